import { performance } from 'node:perf_hooks';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { freePort } from '../../hack/control-plane/ports.ts';
import { leases } from '../../pkg/kube/resource.ts';
import { connect, namespace } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';
import { KubeSession } from '../integration/kube-session.ts';
import { grant, type RoleFile } from '../integration/shipped-roles.ts';
import { Image } from './image.ts';
import { errorsIn, flagsOf } from './manager-command.ts';
import { type Installation, Program, SOURCES } from './program.ts';

const MANAGER = 'machine-controller-manager';
const MACHINE = 'machine-controller';

/** A program, its permissions and the Leases that it takes. */
const LEADERS: readonly { command: string; roles: readonly RoleFile[]; takes: readonly string[] }[] = [
  { command: 'machinist', roles: ['control', 'target'], takes: [MACHINE, MANAGER] },
  { command: MANAGER, roles: ['control-manager', 'target-manager'], takes: [MANAGER] },
  { command: MACHINE, roles: ['control-machine-controller', 'target'], takes: [MACHINE] },
];

/** What Kubernetes gives a container to end. */
const GRACE_MS = 30_000;
const BUILD_MS = 60_000;

describe.each(['its sources', 'its image'])('a manager that runs from %s', (from) => {
  let installation: Installation = SOURCES;
  beforeAll(async () => {
    if (from === 'its image') installation = await Image.build();
  }, BUILD_MS);
  afterAll(async () => {
    if (installation instanceof Image) await installation[Symbol.asyncDispose]();
  });

  test.each(LEADERS)(
    '($command) takes its own Leases, and on SIGTERM ends soon with code 0 and gives them up',
    async ({ command, roles, takes }) => {
      const connection = connect();
      await using own = await namespace();
      await using session = new KubeSession(connection);
      const api = connection.api();
      for (const role of roles) await grant(api, role, own.name);
      await api.close();
      const holders = async (): Promise<Record<string, string>> => {
        const { items } = await session.reader.list(leases, { namespace: own.name });
        return Object.fromEntries(items.map(({ metadata, spec }) => [metadata.name, spec?.holderIdentity ?? '']));
      };
      await using program = new Program(
        command,
        flagsOf(command, [
          `--namespace=${own.name}`,
          `--target-kubeconfig=${await connection.kubeconfigFor({ user: 'machinist' })}`,
          '--address=127.0.0.1',
          `--port=${await freePort()}`,
        ]),
        { installation },
      );
      await eventually(async () => expect(Object.keys(await holders()).toSorted()).toEqual(takes), {
        timeoutMs: 90_000,
        describe: () => `Leases of ${command}, which says:\n${program.stdout}`,
      });
      const held = Object.values(await holders());

      program.kill('SIGTERM');
      const askedMs = performance.now();
      const { code, stdout } = await program.ended();
      const tookMs = performance.now() - askedMs;

      expect(held).not.toContain('');
      expect(code).toBe(0);
      expect(errorsIn(stdout)).toEqual([]);
      expect(tookMs).toBeLessThan(GRACE_MS);
      expect(Object.values(await holders())).toEqual(takes.map(() => ''));
    },
  );
});
