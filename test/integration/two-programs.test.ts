import { PassThrough } from 'node:stream';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';

import {
  FREEZE_LABEL,
  MAX_REPLACEMENTS_ANNOTATION,
  UNFREEZE_ANNOTATION,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { createLogger } from '../../pkg/base/log/logger.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { mutateOnCreation, relabelling } from '../env/mutating-policy.ts';
import { eventually } from '../expect/eventually.ts';
import { grant } from './shipped-roles.ts';

const PATIENCE = { timeoutMs: 120_000, intervalMs: 100 };
const TEST_MS = 180_000;
const MANAGER = 'machinist-manager';
const MACHINES = 'machinist-machines';
const ROLE = 'machinist-machine-controller-control';

let site: Site;
let cloud: SimulatedCloud;
let pool: Pool;

beforeAll(async () => {
  site = await Site.drawn();
  await grant(site.api, 'target-manager', 'default', MANAGER);
  await grant(site.api, 'target', 'default', MACHINES);
  await grant(site.api, 'control-identity', 'default', MACHINES);
});

afterAll(async () => {
  await site[Symbol.asyncDispose]();
});

beforeEach(async () => {
  cloud = await SimulatedCloud.start({ site });
  pool = await Pool.create({ site, cloud, replicas: 2, machine: { healthTimeout: '1s' } });
  await grant(site.api, 'control-manager', pool.namespace, MANAGER);
  await grant(site.api, 'control-machine-controller', pool.namespace, MACHINES);
});

afterEach(async () => {
  await pool[Symbol.asyncDispose]();
  await cloud[Symbol.asyncDispose]();
});

/** One program as a user of its own, with what it has logged. */
async function startProgram(
  user: string,
  controllers: string,
): Promise<InProcessManager & { readonly logged: () => string }> {
  const kubeconfig = await site.plane.connection.kubeconfigFor({ user });
  const lines = new PassThrough().setEncoding('utf8');
  let text = '';
  lines.on('data', (chunk: string) => {
    text += chunk;
  });
  const program = await InProcessManager.start({
    ...pool.access,
    kubeconfig,
    log: createLogger('info', { destination: lines }),
    flags: { controllers, 'machine-safety-grace': '0s' },
  });
  return Object.assign(program, { logged: () => text });
}

const startOwnerControllers = () => startProgram(MANAGER, 'machine-deployment,machine-set,safety.overshoot');
const startMachineControllers = () =>
  startProgram(MACHINES, 'machine,machine-class,secret,safety.orphan-vms,safety.unmanaged-nodes');

/** Annotates the MachineDeployment, as a user does. */
async function annotate(annotations: Record<string, string>): Promise<void> {
  const path = `/apis/machine.sapcloud.io/v1alpha1/namespaces/${pool.namespace}/machinedeployments/pool`;
  const body = { metadata: { annotations } };
  const answer = await site.api.request(path, { method: 'PATCH', contentType: 'application/merge-patch+json', body });
  expect(answer.status).toBe(200);
}

/** How many machines may be replaced at once, as a user says it. */
async function allowReplacements(count: string): Promise<void> {
  await annotate({ [MAX_REPLACEMENTS_ANNOTATION]: count });
}

/** What machine controllers have seen of that: until then they replace one machine at a time. */
function replacementsSeenBy(machines: InProcessManager): string | undefined {
  const deployment = machines.operator.caches.machineDeployments.get(`${pool.namespace}/pool`);
  return deployment?.metadata.annotations?.[MAX_REPLACEMENTS_ANNOTATION];
}

/** Lets a machine's VM lose its power. */
async function fail(name: string): Promise<void> {
  const vm = (await cloud.vms()).find(({ machineName }) => machineName === name);
  cloud.simulation.cloud.change(vm?.providerID ?? '', { power: 'off' });
}

async function machine(name: string): Promise<Machine | undefined> {
  return (await pool.machines()).find(({ metadata }) => metadata.name === name);
}

async function untilGone(name: string): Promise<void> {
  await eventually(async () => (await machine(name)) === undefined, {
    ...PATIENCE,
    describe: `${name} to be replaced`,
  });
}

/** Takes away what Gardener's own role of the machine controllers does not grant. */
async function useOriginalRole(): Promise<void> {
  const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${pool.namespace}/roles/${ROLE}`;
  const role = (await site.api.request(path)).body as { rules: { resources: string[] }[] };
  const rules = role.rules.filter(({ resources }) => !resources.includes('machinesets'));
  expect(rules).toHaveLength(role.rules.length - 1);
  expect((await site.api.request(path, { method: 'PUT', body: { ...role, rules } })).status).toBe(200);
  const verbs = { verb: 'list', group: 'machine.sapcloud.io', resource: 'machinesets', namespace: pool.namespace };
  await eventually(async () => {
    const review = { spec: { user: MACHINES, resourceAttributes: verbs } };
    const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
    const { body } = await site.api.request(reviews, { method: 'POST', body: review });
    return !(body as { status: { allowed: boolean } }).status.allowed;
  }, PATIENCE);
}

describe('two programs, each as a user with its own shipped role', () => {
  test(
    'keep a pool, and the machine controllers obey how many machines of a MachineDeployment may be replaced at once',
    async () => {
      await using manager = await startOwnerControllers();
      await using machines = await startMachineControllers();
      const [sick = ''] = await pool.untilUp(2, PATIENCE);
      await allowReplacements('0');
      await eventually(() => replacementsSeenBy(machines) === '0', PATIENCE);

      await fail(sick);
      await eventually(async () => {
        const description = (await machine(sick))?.status?.lastOperation?.description;
        expect(description).toContain('replacement is disabled by annotation');
      }, PATIENCE);
      await allowReplacements('1');
      await untilGone(sick);
      await pool.untilUp(2, PATIENCE);

      expect(machines.logged()).not.toContain('continuing without');
      expect(`${manager.logged()}${machines.logged()}`).not.toContain('Forbidden');
      expect(cloud.created).toHaveLength(3);
    },
    TEST_MS,
  );

  test(
    'keep a pool under the original role, too, where one machine is replaced at a time, and say so once',
    async () => {
      await useOriginalRole();
      await using _manager = await startOwnerControllers();
      await using machines = await startMachineControllers();
      const [sick = ''] = await pool.untilUp(2, PATIENCE);
      await allowReplacements('0'); // which these machine controllers cannot see

      await fail(sick);
      await untilGone(sick);
      await pool.untilUp(2, PATIENCE);

      const said = machines.logged().match(/"msg":"continuing without MachineSets and MachineDeployments: [^"]*"/g);
      expect(said).toHaveLength(2); // once for each kind
      expect(machines.logged()).toContain('apply deploy/rbac/control-machine-controller.yaml (');
      expect(cloud.created).toHaveLength(3);
    },
    TEST_MS,
  );
});

test(
  'owner controllers without the overshoot safety end the freeze that it began, when the annotation asks for it',
  async () => {
    await pool.scale(0);
    await using manager = await startProgram(MANAGER, 'machine-deployment,machine-set');
    {
      await using _policy = await mutateOnCreation(site.plane, relabelling(pool.namespace, 'pool'));
      await pool.scale(2);
      await eventually(async () => {
        const { metadata, status } = await pool.deployment();
        expect(metadata.labels?.[FREEZE_LABEL]).toBe('True');
        expect(status?.conditions?.find(({ type }) => type === 'Frozen')?.reason).toBe('CreationLimitReached');
      }, PATIENCE);
    }
    const lost = (await pool.machines()).length;

    await annotate({ [UNFREEZE_ANNOTATION]: 'True' });
    await pool.untilAsked(lost + 2);

    const { metadata, status } = await pool.deployment();
    expect(metadata.labels?.[FREEZE_LABEL]).toBeUndefined();
    expect(status?.conditions?.map(({ type }) => type)).not.toContain('Frozen');
    expect(Object.keys(metadata.annotations ?? {})).not.toContain(UNFREEZE_ANNOTATION);
    expect(manager.logged()).toContain('"msg":"unfroze a machine deployment on request"');
    expect(manager.logged()).not.toContain('Forbidden');
  },
  TEST_MS,
);
