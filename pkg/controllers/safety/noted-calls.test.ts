import { expect, test } from '@jest/globals';

import { FakeDriver } from '../../../test/fakes/driver.ts';
import { machine, machineClass } from '../../../test/builders.ts';
import { DriverError } from '../../driver/error.ts';
import type { MachineRequest } from '../../driver/driver.ts';
import { notingCalls } from './noted-calls.ts';

const signal = new AbortController().signal;
const request: MachineRequest = { machine: machine(), machineClass: machineClass(), secretData: {} };
const { uid } = machine().metadata;
/** A VM without a Machine. */
const stub: MachineRequest = { ...request, machine: { metadata: { name: 'm-1', namespace: 'default' }, spec: {} } };

/** A driver and what was noted of its calls. */
function noting() {
  const driver = new FakeDriver();
  const noted: string[] = [];
  const note = (what: string) => (of: string) => void noted.push(`${what} ${of}, ${driver.calls.length} calls`);
  const noter = {
    creatingVM: note('creating'),
    deletingVM: note('deleting'),
    deletedVM: note('deleted'),
    gaveUpVM: note('gave up'),
  };
  const late = {
    sent: (classKey: string) => void noted.push(`sent ${classKey}`),
    ended: (classKey: string, wasAnswered: boolean) =>
      void noted.push(`${wasAnswered ? 'answered' : 'unanswered'} ${classKey}`),
  };
  const drivers = notingCalls({ resolve: () => driver, all: () => [driver] }, noter, late);
  const resolved = drivers.resolve(machineClass(), machine());
  if (resolved === undefined) throw new Error('no driver');
  return { driver, noted, asked: resolved, drivers };
}

test('a creation is noted before it is sent, and that it was answered', async () => {
  const { asked, noted } = noting();

  await asked.create(request, signal, 1_000);

  expect(noted).toEqual([`creating ${uid}, 0 calls`, 'sent default/class-1', 'answered default/class-1']);
});

test.each([
  { failure: new DriverError('PermissionDenied', 'x', { unanswered: true }), how: 'unanswered' },
  { failure: new DriverError('DeadlineExceeded', 'x'), how: 'unanswered' },
  { failure: new DriverError('Internal', 'x'), how: 'unanswered' },
  { failure: new DriverError('PermissionDenied', 'x'), how: 'answered' },
  { failure: new DriverError('ResourceExhausted', 'x'), how: 'answered' },
  { failure: new Error('x: the gate is closed'), how: 'answered' },
])(
  'of a creation that fails it is noted whether its answer says that nothing was made ($failure.code, $how)',
  async ({ failure, how }) => {
    const { asked, driver, noted } = noting();
    driver.failures['create'] = [failure];

    await expect(asked.create(request, signal, 1_000)).rejects.toThrow('x');

    expect(noted.slice(2)).toEqual([`${how} default/class-1`]);
  },
);

test.each([
  { what: 'that succeeds', failure: undefined, end: 'deleted' },
  { what: 'of a VM that does not exist', failure: new DriverError('NotFound', 'x'), end: 'deleted' },
  { what: 'that fails', failure: new DriverError('Internal', 'x'), end: 'gave up' },
  { what: 'that is not sent', failure: new Error('the gate is closed'), end: 'gave up' },
])('a deletion $what is noted before it is sent and as $end at its end', async ({ failure, end }) => {
  const { asked, driver, noted } = noting();
  if (failure !== undefined) driver.failures['delete'] = [failure];

  const [call] = await Promise.allSettled([asked.delete(request, signal)]);

  expect(call?.status).toBe(failure === undefined ? 'fulfilled' : 'rejected');
  expect(noted).toEqual([`deleting ${uid}, 0 calls`, `${end} ${uid}, 1 calls`]);
});

test('what is asked without a Machine is not noted, and all drivers note', async () => {
  const { asked, noted, drivers } = noting();

  await asked.create(stub, signal, 1_000);
  await asked.delete(stub, signal);

  expect(noted.filter((one) => !one.includes('class-1'))).toEqual([]);
  expect(drivers.all()).toEqual([asked]);
});
