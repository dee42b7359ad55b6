import { expect, test } from '@jest/globals';

import { machine } from '../../builders.ts';
import { watchCutOff } from './cut-off.ts';

type World = Parameters<typeof watchCutOff>[0];
type Request = Parameters<Parameters<World['processes']['onRequest']>[0]>[0];

const DELETED = { method: 'DeleteMachine', path: 'm-1' };
const CORDONED = { to: 'target', method: 'PATCH', path: '/api/v1/nodes/m-1', body: { spec: { unschedulable: true } } };
const LET_GO = {
  to: 'control',
  method: 'DELETE',
  path: '/apis/machine.sapcloud.io/v1alpha1/namespaces/pools/machinesets/empty',
};

/** What is found of a request that is sent at 300 s, while clusters have not answered since some seconds. */
function found(
  request: Partial<Request>,
  downSinceS: { readonly control?: number; readonly target?: number },
  concerns = true,
): readonly string[] {
  const findings: string[] = [];
  let tell: (request: Request) => void = () => undefined;
  const world: World = {
    concerns: () => concerns,
    downSinceMs: (cluster) => (downSinceS[cluster] ?? Infinity) * 1_000,
    machines: [machine()],
    processes: { onRequest: (listener) => void (tell = listener) },
  };
  watchCutOff(world, (what) => findings.push(what));
  tell({ identity: 'manager-1', to: 'sim', method: '', path: '', sentAtMs: 300_000, ...request });
  return findings;
}

test.each([
  { what: 'a call', request: DELETED, downSinceS: { target: 287 }, count: 1 },
  { what: 'a call soon after the last answer', request: DELETED, downSinceS: { target: 288.5 }, count: 0 },
  {
    what: 'a call that was on its way',
    request: { ...DELETED, sentAtMs: 298_000 },
    downSinceS: { target: 287 },
    count: 0,
  },
  { what: 'a call while Machines are unknown', request: DELETED, downSinceS: { control: 287 }, count: 1 },
  { what: 'a call while nothing is known, once', request: DELETED, downSinceS: { control: 0, target: 0 }, count: 1 },
  { what: 'a call while all answer', request: DELETED, downSinceS: {}, count: 0 },
  { what: 'what depends on the other cluster', request: LET_GO, downSinceS: { target: 0 }, count: 0 },
  { what: 'the same while its own is away', request: LET_GO, downSinceS: { control: 280 }, count: 1 },
  { what: 'a cordon before there is an outage', request: CORDONED, downSinceS: { target: 130 }, count: 0 },
  { what: 'a cordon in an outage', request: CORDONED, downSinceS: { target: 119 }, count: 1 },
  { what: 'a cordon in an outage of what says why', request: CORDONED, downSinceS: { control: 0 }, count: 1 },
  { what: 'a read', request: { method: 'GetMachineStatus', path: 'm-1' }, downSinceS: { target: 0 }, count: 0 },
])('while a cluster does not answer, $what is found $count times', ({ request, downSinceS, count }) => {
  expect(found(request, downSinceS)).toHaveLength(count);
});

test('what is found says what was sent, which cluster was away, and for how long', () => {
  expect(found(DELETED, { target: 260 })).toEqual([
    'DeleteMachine: DeleteMachine m-1 was sent when the target cluster had not answered for 40 s',
  ]);
});

test('what concerns others is not judged', () => {
  expect(found(DELETED, { target: 0 }, false)).toEqual([]);
});
