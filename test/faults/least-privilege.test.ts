import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createChannel, createClient } from 'nice-grpc';

import { parseManifests } from '../../hack/control-plane/apply.ts';
import { CloudProviderDefinition } from '../../pkg/autoscaler/gen/clusterautoscaler/cloudprovider/v1/externalgrpc/cloud_provider.ts';
import type { Interceptor } from '../../pkg/kube/gate/interceptor.ts';
import { ApiError } from '../../pkg/kube/client/errors.ts';
import { Audit } from '../cloud/audit.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { Workload } from '../cloud/workload.ts';
import { eventually } from '../expect/eventually.ts';
import { grant, type RoleFile } from '../integration/shipped-roles.ts';

/*
 * What the shipped roles grant, against what the API server's audit log says was asked for in a life with a rollout, drains with volumes
 * and budgets, a forced deletion, a vanished Node, an autoscaler that looks, and further replicas.
 */
const DEPLOY = join(import.meta.dirname, '../../deploy');
const PATIENCE = { timeoutMs: 120_000, intervalMs: 200 };

const FALLS_ILL = [
  ['unknown', 'Unknown'],
  ['ready', 'Running'],
] as const;

/** Programs that run as users of their own, so that none makes use of what another is granted. */
interface Program {
  readonly user: string;
  readonly files: readonly RoleFile[];
  readonly controllers?: string;
  readonly isAutoscaled?: true;
}

const OWNERS: Program = {
  user: 'machinist-owners',
  files: ['control-manager', 'target-manager'],
  controllers: 'machine-deployment,machine-set,safety.overshoot',
  isAutoscaled: true,
};
const MACHINES: Program = {
  user: 'machinist-machines',
  files: ['control-machine-controller', 'control-identity', 'target'],
  controllers: 'machine,machine-class,secret,safety.orphan-vms,safety.unmanaged-nodes',
};
const ALL: Program = { user: 'machinist', files: ['control', 'control-identity', 'target'] };

let audit: Audit;
let site: Site;
let directory: string;

beforeAll(async () => {
  audit = new Audit('everything');
  site = await Site.open({ extraArguments: { 'kube-apiserver': audit.arguments } });
  directory = mkdtempSync(join(tmpdir(), 'least-privilege-'));
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
  audit[Symbol.dispose]();
  rmSync(directory, { recursive: true, force: true });
});

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** `verb resource.group`, with the name where only that is granted, of every rule of the files in deploy. */
function grantedBy(files: readonly string[]): readonly string[] {
  const manifests = files.flatMap((file) => parseManifests(readFileSync(join(DEPLOY, file), 'utf8')));
  const rules = manifests.flatMap(({ rules: some = [] }) => some as readonly Rule[]);
  const all = rules.flatMap(({ apiGroups, resources, resourceNames = [''], verbs }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        verbs.flatMap((verb) => resourceNames.map((name) => named({ verb, resource, group, name }))),
      ),
    ),
  );
  return [...new Set(all)].toSorted();
}

function named(what: { verb: string; resource: string; group: string; name: string }): string {
  const { verb, resource, group, name } = what;
  return `${verb} ${resource}${group === '' ? '' : `.${group}`}${name === '' ? '' : ` ${name}`}`;
}

const filesOf = ({ files }: Program): readonly string[] => files.map((file) => `rbac/${file}.yaml`);

/** Another writer changes the first pod just when it is evicted. */
function conflictOnce(): Interceptor {
  let isFirst = true;
  return async (mutation, send) => {
    if (isFirst && mutation.text.startsWith('POST pods/eviction ')) {
      isFirst = false;
      throw new ApiError(409, 'Conflict', 'the pod was changed');
    }
    return await send();
  };
}

/** The port of the owner controllers, as a cluster-autoscaler asks it before it changes something. */
async function refresh(address: string): Promise<void> {
  const channel = createChannel(address);
  await createClient(CloudProviderDefinition, channel).refresh({});
  channel.close();
}

/** One replica of a program. */
async function start(program: Program, pool: Pool, address: string): Promise<InProcessManager> {
  const { user, controllers, isAutoscaled } = program;
  return await InProcessManager.start({
    ...pool.access,
    kubeconfig: await site.plane.connection.kubeconfigFor({ user }),
    flags: {
      'leader-elect': 'true',
      ...(controllers === undefined ? {} : { controllers }),
      ...(isAutoscaled === undefined ? {} : { 'autoscaler-grpc-address': address }),
    },
    hooks: { intercept: conflictOnce() },
  });
}

/** Everything that happens to machines. */
async function live(pool: Pool, cloud: SimulatedCloud): Promise<void> {
  const workload = await Workload.open(site.api, pool.namespace);
  await pool.untilUp(2);
  // What happens twice in the same words is one Event with a count.
  for (const replicas of [3, 2, 3]) {
    await pool.scale(replicas);
    await pool.untilUp(replicas);
  }
  const [drained = '', vanished = ''] = await pool.untilUp(3);
  for (const [readiness, phase] of [...FALLS_ILL, ...FALLS_ILL]) {
    await cloud.simulation.nodes?.setReadiness(drained, readiness);
    await eventually(async () => {
      expect((await pool.machine(drained)).status?.currentStatus?.phase).toBe(phase);
    }, PATIENCE);
  }
  // Reaches the Machines without a rollout.
  await pool.change({ template: { spec: { drainTimeout: '1h' } } });
  const volume = await workload.volume(drained);
  await workload.pod(drained, volume);
  await workload.pod(drained);
  await workload.forbidEvictions(2);
  await pool.deleteMachine(drained);
  await eventually(async () => {
    expect((await pool.machine(drained)).status?.lastOperation?.description).toContain('/closed is misconfigured');
  }, PATIENCE);
  await pool.label(drained, { 'force-deletion': 'true' });
  await eventually(async () => expect(await workload.attachments(drained)).toEqual([]), PATIENCE);
  await site.api.send('DELETE', `/api/v1/nodes/${vanished}`);
  await eventually(async () => {
    const names = (await pool.machines()).map(({ metadata }) => metadata.name);
    expect(names).not.toContain(drained);
    expect(names).not.toContain(vanished);
  }, PATIENCE);
  await pool.untilUp(3);
  await pool.roll('2');
  await pool.untilUp(3);
  await pool.delete();
  await pool.untilGone(PATIENCE);
}

describe.each([
  { programs: [ALL], layouts: { 'one-process': [ALL] } },
  { programs: [OWNERS, MACHINES], layouts: { split: [OWNERS, MACHINES], 'beside-provider': [OWNERS] } },
])('programs $programs.0.user', ({ programs, layouts }) => {
  test.each(Object.entries(layouts))('are granted by layout %s what their roles grant', (layout, granted) => {
    expect(grantedBy([`layouts/${layout}/rbac.yaml`])).toEqual(grantedBy(granted.flatMap(filesOf)));
  });

  test('are refused nothing that they ask for, and use every verb that their roles grant', async () => {
    await using cloud = await SimulatedCloud.start({ site, latencyMs: QUICK });
    await using pool = await Pool.create({ site, cloud, replicas: 2 });
    const port = `unix://${join(directory, pool.namespace)}`;
    await using stack = new AsyncDisposableStack();
    for (const program of programs) {
      for (const file of program.files) await grant(site.api, file, pool.namespace, program.user);
      stack.use(await start(program, pool, port));
      if (program.isAutoscaled) await eventually(() => refresh(port), PATIENCE);
    }
    await live(pool, cloud);
    const asked = audit.requests();

    for (const program of programs) {
      const { user } = program;
      const ours = asked.filter((request) => request.user === user);
      const grants = grantedBy(filesOf(program));
      const used = ours.map((request) => [named(request), named({ ...request, name: '' })]);
      const beyond = used.filter((some) => !some.some((one) => grants.includes(one)));

      expect(ours.filter(({ code }) => code === 401 || code === 403)).toEqual([]);
      expect({ user, unused: grants.filter((one) => !used.flat().includes(one)) }).toEqual({ user, unused: [] });
      expect(beyond.flat().filter((one) => !one.endsWith('.authorization.k8s.io'))).toEqual([]);
    }
  }, 300_000);
});
