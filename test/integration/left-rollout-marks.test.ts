import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, test } from '@jest/globals';

import { API_VERSION } from '../../pkg/apis/machine/v1alpha1/group.ts';
import {
  CANDIDATE_FOR_UPDATE_LABEL,
  PREFER_NO_SCHEDULE_KEY,
  SCALE_UP_DISABLED_LABEL,
  SELECTED_FOR_UPDATE_LABEL,
  UPDATE_ORDER_ANNOTATION,
  UPDATE_RESULT_LABEL,
} from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { Pool } from '../cloud/pool.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { WITHOUT_KUBELETS } from '../env/environment.ts';
import { eventually } from '../expect/eventually.ts';

const PATIENCE = { timeoutMs: 120_000 };
const TEST_MS = 120_000;
const HELD = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';
const MARKED = [HELD, `${HELD}-by-mcm`];
const IN_PLACE = {
  type: 'InPlaceUpdate',
  rollingUpdate: null,
  inPlaceUpdate: { maxSurge: 0, maxUnavailable: 1, orchestrationType: 'Auto' },
};
/** The new machines of a rolling update never come. */
const NO_CREATION = [{ method: 'CreateMachine', effect: 'fail', code: 'Internal' }] as const;
const template = { metadata: { annotations: { version: '2' } } };

const isTainted = ({ spec }: Node): boolean => spec?.taints?.some(({ key }) => key === PREFER_NO_SCHEDULE_KEY) ?? false;
const isHeld = ({ metadata }: Node): boolean => MARKED.some((key) => key in (metadata.annotations ?? {}));
const isLabelled = ({ metadata }: Node): boolean =>
  [CANDIDATE_FOR_UPDATE_LABEL, SELECTED_FOR_UPDATE_LABEL, UPDATE_RESULT_LABEL].some(
    (key) => key in (metadata.labels ?? {}),
  );
const marksOf = (nodes: readonly Node[]): Record<string, number> => ({
  nodes: nodes.length,
  tainted: nodes.filter(isTainted).length,
  held: nodes.filter(isHeld).length,
  cordoned: nodes.filter(({ spec }) => spec?.unschedulable === true).length,
  labelled: nodes.filter(isLabelled).length,
});
const NONE = { tainted: 0, held: 0, cordoned: 0, labelled: 0 };

/**
 * Resolves when garbage collection knows MachineSets: of a kind that was defined a moment ago it sees no dependents for half a minute, and
 * what an owner that goes should have left behind it deletes afterwards.
 */
async function untilCollected({ api }: Site): Promise<void> {
  const path = '/apis/machine.sapcloud.io/v1alpha1/namespaces/default/machinesets';
  const owner = { kind: 'MachineDeployment', name: 'never-was', uid: '00000000-0000-4000-8000-000000000000' };
  const labels = { of: 'nobody' };
  await api.send('POST', path, {
    apiVersion: API_VERSION,
    kind: 'MachineSet',
    metadata: { name: 'of-nobody', ownerReferences: [{ apiVersion: API_VERSION, ...owner }] },
    spec: {
      replicas: 0,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { class: { kind: 'MachineClass', name: 'none' } } },
    },
  });
  const isGone = async (): Promise<boolean> => (await api.request(`${path}/of-nobody`)).status === 404;
  await eventually(isGone, { timeoutMs: 150_000, describe: 'garbage collection of a MachineSet' });
}

describe('what a rollout puts on Nodes goes when it has no reason any more:', () => {
  let site: Site;
  let cloud: SimulatedCloud;
  let pool: Pool;
  let manager: InProcessManager;

  beforeAll(async () => {
    site = await Site.drawn({ controllerManager: true, ...WITHOUT_KUBELETS });
    await untilCollected(site);
  }, 2 * TEST_MS);
  afterAll(() => site[Symbol.asyncDispose]());

  beforeEach(async () => {
    cloud = await SimulatedCloud.start({ site, latencyMs: QUICK });
    pool = await Pool.create({ site, cloud, replicas: 3 });
    manager = await InProcessManager.start(pool.access);
    await pool.untilUp(3, PATIENCE);
  }, TEST_MS);
  afterEach(async () => {
    await manager.terminate();
    await pool[Symbol.asyncDispose]();
    await cloud[Symbol.asyncDispose]();
  });

  const path = (plural: string, name = ''): string =>
    `/apis/machine.sapcloud.io/v1alpha1/namespaces/${pool.namespace}/${plural}${name === '' ? '' : `/${name}`}`;
  const shows = (want: Record<string, number>): Promise<unknown> =>
    eventually(async () => expect(marksOf(await pool.nodes())).toMatchObject(want), PATIENCE);
  const orphan = async (): Promise<void> => {
    await site.api.send('DELETE', path('machinedeployments', 'pool'), { propagationPolicy: 'Orphan' });
    await eventually(async () => {
      const { items } = await site.api.send<{ items: unknown[] }>('GET', path('machinedeployments'));
      expect(items).toEqual([]);
    }, PATIENCE);
  };
  const sets = async (): Promise<readonly MachineSet[]> =>
    (await site.api.send<{ items: MachineSet[] }>('GET', path('machinesets'))).items;
  /** The Node that is ready for its update, as its agent sees it. */
  const ready = (): Promise<string> =>
    eventually(async () => {
      const [node] = (await pool.nodes()).filter(({ status }) =>
        status?.conditions?.some(({ type, reason }) => type === 'InPlaceUpdate' && reason === 'ReadyForUpdate'),
      );
      if (node === undefined) throw new Error('no Node is ready for its update');
      return node.metadata.name;
    }, PATIENCE);
  const succeed = (node: string): Promise<unknown> =>
    site.api.send('PATCH', `/api/v1/nodes/${node}`, { metadata: { labels: { [UPDATE_RESULT_LABEL]: 'successful' } } });
  const stuckInMidRoll = async (): Promise<void> => {
    cloud.setFaults(NO_CREATION);
    await pool.change({ template });
    await shows({ nodes: 3, tainted: 3, held: 3 });
  };

  test(
    'the MachineDeployment was deleted, and its machines were not',
    async () => {
      await stuckInMidRoll();
      const [mine] = await pool.nodes();
      const annotations = { [HELD]: 'true', [`${HELD}-by-mcm`]: null };
      await site.api.send('PATCH', `/api/v1/nodes/${mine?.metadata.name}`, { metadata: { annotations } });

      await orphan();

      await shows({ nodes: 3, ...NONE, held: 1 });
      await eventually(async () => {
        const notes = (await sets()).map(({ metadata }) => metadata.annotations?.[PREFER_NO_SCHEDULE_KEY]);
        expect(notes).toEqual([undefined, undefined]);
      }, PATIENCE);
      expect((await pool.nodes()).filter(isHeld).map(({ metadata }) => metadata.name)).toEqual([mine?.metadata.name]);
    },
    TEST_MS,
  );

  test(
    'the next manager keeps nothing from the autoscaler',
    async () => {
      await stuckInMidRoll();

      await manager.terminate();
      const flags = { 'autoscaler-scaledown-annotation-during-rollout': 'false' };
      manager = await InProcessManager.start({ ...pool.access, flags });

      await shows({ nodes: 3, tainted: 3, held: 0 });
    },
    TEST_MS,
  );

  test(
    'the rollout is paused',
    async () => {
      await stuckInMidRoll();

      await pool.change({ paused: true });
      await shows({ nodes: 3, tainted: 3, held: 0 });

      await pool.change({ paused: false });
      await shows({ nodes: 3, tainted: 3, held: 3 });
    },
    TEST_MS,
  );

  test(
    'an updated machine has lost its MachineDeployment in the middle of an update in place',
    async () => {
      await pool.change({ strategy: IN_PLACE, template });
      const node = await ready();
      await shows({ nodes: 3, tainted: 3, held: 3, cordoned: 1, labelled: 3 });

      await orphan();
      await shows({ nodes: 3, tainted: 1, cordoned: 1, labelled: 1 });
      await succeed(node);

      await shows({ nodes: 3, ...NONE });
      await eventually(async () => {
        const labels = (await sets()).map(({ metadata }) => metadata.labels?.[SCALE_UP_DISABLED_LABEL]);
        expect(labels).toEqual([undefined, undefined]);
      }, PATIENCE);
      expect(cloud.deleted).toBe(0);
    },
    TEST_MS,
  );

  test(
    'a machine is updated in place while its MachineDeployment is paused',
    async () => {
      await pool.change({ strategy: IN_PLACE, template });
      const node = await ready();

      await pool.change({ paused: true });
      await succeed(node);
      await eventually(async () => {
        expect((await sets()).map(({ spec }) => spec.replicas ?? 0).toSorted((a, b) => a - b)).toEqual([1, 2]);
        expect(marksOf(await pool.nodes())).toMatchObject({ nodes: 3, cordoned: 0, labelled: 2, held: 0 });
      }, PATIENCE);

      await pool.change({ paused: false });
      for (let updated = 1; updated < 3; updated++) {
        const next = await ready();
        await succeed(next);
        await eventually(
          async () => expect((await pool.deployment()).status?.updatedReplicas).toBe(updated + 1),
          PATIENCE,
        );
      }
      await shows({ nodes: 3, ...NONE });
      expect(cloud.deleted).toBe(0);
    },
    TEST_MS,
  );

  const version = (of: string) => ({ metadata: { annotations: { version: of } } });
  const setOf = async (of: string): Promise<MachineSet> => {
    const found = (await sets()).find(({ spec }) => spec.template?.metadata?.annotations?.['version'] === of);
    if (found === undefined) throw new Error(`there is no MachineSet of version ${of}`);
    return found;
  };

  test(
    'the template is changed again while a machine is updated in place and its MachineDeployment is paused',
    async () => {
      await pool.change({ strategy: IN_PLACE, template });
      const node = await ready();

      await pool.change({ paused: true, template: version('3') });
      await succeed(node);
      await shows({ nodes: 3, cordoned: 0, labelled: 2 });

      await pool.change({ paused: false });
      await ready();
      expect((await setOf('3')).spec.replicas).toBe(0);
      await shows({ nodes: 3, cordoned: 1, labelled: 3 });
      expect(cloud.deleted).toBe(0);
    },
    TEST_MS,
  );

  test(
    'the template is changed again while a machine is updated in place: it is updated again',
    async () => {
      await pool.change({ strategy: IN_PLACE, template });
      const node = await ready();

      await pool.change({ template: version('3') });
      await eventually(() => setOf('3'), PATIENCE);
      await succeed(node);
      await eventually(async () => {
        const [its] = (await pool.nodes()).filter(({ metadata }) => metadata.name === node);
        expect(its?.metadata.labels?.[UPDATE_RESULT_LABEL]).toBeUndefined();
      }, PATIENCE);
      expect((await setOf('3')).spec.replicas).toBe(0);

      for (let updated = 0; updated < 3; updated++) {
        await succeed(await ready());
        await eventually(async () => expect((await setOf('3')).spec.replicas).toBe(updated + 1), PATIENCE);
      }
      await shows({ nodes: 3, ...NONE });
      expect(cloud.deleted).toBe(0);
    },
    TEST_MS,
  );

  test(
    'a machine is updated in place, and the rollout to a newer template waits for its turn',
    async () => {
      const order = (index: number) => ({ metadata: { annotations: { [UPDATE_ORDER_ANNOTATION]: `g/${index}` } } });
      await site.api.send('PATCH', path('machinedeployments', 'pool'), order(2));
      await pool.change({ strategy: IN_PLACE, template });
      const node = await ready();

      // It never has its Machine, as no driver serves its class.
      const labels = { pool: 'first' };
      await site.api.send('POST', path('machinedeployments'), {
        apiVersion: API_VERSION,
        kind: 'MachineDeployment',
        metadata: { name: 'first', ...order(1).metadata },
        spec: {
          replicas: 1,
          strategy: { type: 'Recreate' },
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec: { class: { kind: 'MachineClass', name: 'none' } } },
        },
      });
      const first = path('machinedeployments', 'first');
      await eventually(async () => {
        const { items } = await site.api.send<{ items: Machine[] }>('GET', path('machines'));
        expect(items.filter(({ metadata }) => metadata.labels?.['pool'] === 'first')).toHaveLength(1);
      }, PATIENCE);
      await site.api.send('PATCH', first, {
        spec: { paused: true, template: { metadata: { annotations: { version: '2' } } } },
      });
      await pool.change({ template: version('3') });
      await eventually(async () => {
        const { status } = await pool.deployment();
        expect(status?.conditions).toContainEqual(expect.objectContaining({ reason: 'WaitingForUpdateOrder' }));
      }, PATIENCE);

      await succeed(node);
      await shows({ nodes: 3, cordoned: 0, labelled: 2 });
      expect((await sets()).map(({ spec }) => spec.template?.metadata?.annotations?.['version'])).not.toContain('3');
      expect(cloud.deleted).toBe(0);
    },
    TEST_MS,
  );
});
