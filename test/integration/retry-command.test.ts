import { describe, expect, test } from '@jest/globals';

import type { Driver } from '../../pkg/driver/driver.ts';
import { DriverError } from '../../pkg/driver/error.ts';
import { Program } from '../e2e/program.ts';
import type { Ending } from '../e2e/program.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineWorld } from './machine-world.ts';
import { driverWith } from '../drivers/driver-with.ts';

const PATIENCE = { timeoutMs: 120_000 };
const TEST_MS = 240_000;

/** A provider that refuses creations for good, so that each is retried after ten minutes, until `works` is set. */
class Provider {
  works = false;
  refused = 0;

  readonly wrap = (driver: Driver): Driver =>
    driverWith(driver, {
      createMachine: (request, call) => {
        if (this.works) return driver.createMachine(request, call);
        this.refused++;
        return Promise.reject(new DriverError('PermissionDenied', 'account is closed', { terminal: true }));
      },
    });
}

function retry(world: MachineWorld, ...args: string[]): Promise<Ending> {
  return Program.run('machinist', [
    'retry',
    ...args,
    '-n',
    world.namespace,
    `--kubeconfig=${world.connection.kubeconfig}`,
  ]);
}

describe('machinist retry', () => {
  test.each([
    {
      what: 'a Machine',
      argsOf: (name: string) => [`machine.machine.sapcloud.io/${name}`],
      says: 'machine.machine.sapcloud.io/',
    },
    { what: 'a MachineClass', argsOf: () => ['mcc', 'class-1'], says: 'machineclass.machine.sapcloud.io/class-1' },
  ])(
    'of $what repeats a failed creation long before its delay ends, once for each request',
    async ({ argsOf, says }) => {
      const provider = new Provider();
      await using world = await MachineWorld.open({ wrap: provider.wrap });
      const name = await world.create();
      await world.inPhase(name, 'CrashLoopBackOff');
      expect(provider.refused).toBe(1);

      const access = ['-n', world.namespace, `--kubeconfig=${world.connection.kubeconfig}`];
      const described = await Program.run('machinist', [
        'describe',
        `mc/${name}`,
        `--url=${world.session.url}`,
        ...access,
      ]);
      expect(described.stdout).toMatch(/\nNext Attempt: +\S+Z \(in \d+m\d*s?; create, attempt 2\)\n/);

      const first = await retry(world, ...argsOf(name));
      await eventually(() => expect(provider.refused).toBe(2), PATIENCE);
      provider.works = true;
      const second = await retry(world, ...argsOf(name));

      await world.inPhase(name, 'Running');
      expect(provider.refused).toBe(2);
      const want = {
        code: 0,
        stdout: expect.stringMatching(new RegExp(`^${says}\\S* retry requested\\n$`)),
        stderr: '',
      };
      expect([first, second]).toEqual([want, want]);
    },
    TEST_MS,
  );

  test(
    'says what is missing, or cannot be retried, and requests nothing of what comes after it',
    async () => {
      await using world = await MachineWorld.open();

      const missing = await retry(world, 'mc/none', 'mcc/class-1');
      const wrong = await retry(world, 'mcd/workers');
      const none = await retry(world, 'mc');

      expect(missing).toEqual({
        code: 1,
        stdout: '',
        stderr: 'Error from server (NotFound): machines.machine.sapcloud.io "none" not found\n',
      });
      expect(wrong).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('unknown type "mcd"; this command supports machine or mc, machineclass or mcc'),
      });
      expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining('expected a name') });
    },
    TEST_MS,
  );
});
