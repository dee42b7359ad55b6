import { describe, expect, test } from '@jest/globals';

import {
  machine,
  machineDeployment,
  machineSet,
  type BuiltMachine,
  type BuiltMachineDeployment,
} from '../../../../test/builders.ts';
import { DeploymentWorld } from '../../../../test/fakes/replicas-world.ts';
import {
  MACHINE_FINALIZER,
  REVISION_ANNOTATION,
  UPDATE_ORDER_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { controllerReference } from '../../../work/reconcile/ownership.ts';

const API_VERSION = 'machine.sapcloud.io/v1alpha1';
const RECREATE = { type: 'Recreate' } as const;
const SURGING = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 2, maxUnavailable: 0 } } as const;
const IN_PLACE = {
  type: 'InPlaceUpdate',
  inPlaceUpdate: { maxSurge: 0, maxUnavailable: 1, orchestrationType: 'Manual' },
} as const;
const SURGING_IN_PLACE = {
  type: 'InPlaceUpdate',
  inPlaceUpdate: { maxSurge: 2, maxUnavailable: 0, orchestrationType: 'Auto' },
} as const;
/** Of which no set can be created. */
const UNMADE = { class: { kind: 'MachineClass', name: 'class-9' } };

interface Scene {
  /** Of the sets, by revision: the first is asked for, the last is that of the present template. */
  readonly sizes: readonly number[];
  readonly change?: (d: BuiltMachineDeployment) => void;
  readonly code?: number;
  /** To which the sets were scaled before. */
  readonly before?: number;
  /** Whether each set has as many Machines as it is large, and which else. */
  readonly machines?: readonly Machine[] | undefined;
}

const NAMES = ['older', 'old', 'new'];

class Refused {
  readonly deps: DeploymentWorld;
  isAccepted = false;
  readonly #names: readonly string[];

  constructor({ sizes, change = () => undefined, code = 422, before = 3, machines = [] }: Scene) {
    const owner = machineDeployment((d) => {
      d.metadata.finalizers = [MACHINE_FINALIZER];
      d.metadata.annotations = { [REVISION_ANNOTATION]: '1' };
      d.spec.rollbackTo = { revision: 1 };
      change(d);
    });
    this.#names = NAMES.slice(-sizes.length);
    const sets = this.#names.map((name, i) =>
      machineSet((s) => {
        Object.assign(s.metadata, { name, uid: name });
        s.metadata.ownerReferences = [controllerReference(owner, API_VERSION, 'MachineDeployment')];
        s.metadata.annotations = {
          [REVISION_ANNOTATION]: String(i + 1),
          'deployment.kubernetes.io/desired-replicas': String(before),
          'deployment.kubernetes.io/max-replicas': String(before + 1),
        };
        s.spec.replicas = sizes[i] ?? 0;
        if (name !== 'new') s.spec.template.spec = { class: { kind: 'MachineClass', name: `class-of-${name}` } };
      }),
    );
    this.deps = new DeploymentWorld(owner, { sets, machines });
    const patch = this.deps.client.patch.bind(this.deps.client);
    this.deps.client.patch = async (...args) => {
      if (!this.isAccepted && JSON.stringify(args[3].body).includes('rollbackTo'))
        throw new ApiError(code, code === 500 ? 'InternalError' : 'Invalid', 'class-0 is retired');
      return await patch(...args);
    };
  }

  get sizes(): readonly number[] {
    return this.#names.map((name) => this.deps.machineSets.get(`default/${name}`)?.spec.replicas ?? 0);
  }

  /** What the condition of that type says. */
  reason(type: string): string | undefined {
    const { status } = this.deps.machineDeployments.get('default/deployment-1') ?? {};
    return status?.conditions?.find((one) => one.type === type)?.reason;
  }

  /** What that condition says after each of eight passes, with so long between them. */
  async told(type: string, pauseMs: number): Promise<readonly (string | undefined)[]> {
    const told: (string | undefined)[] = [];
    for (let passes = 0; passes < 8; passes += 1) {
      await this.deps.pass();
      told.push(this.reason(type));
      this.deps.clock.advance(pauseMs);
    }
    return told;
  }

  /** Somebody wants so many replicas now. */
  want(replicas: number): void {
    const now = this.deps.machineDeployments.get('default/deployment-1');
    if (now === undefined) return;
    const metadata = { ...now.metadata, resourceVersion: `9${now.metadata.resourceVersion ?? ''}` };
    this.deps.machineDeployments.put({ ...now, metadata, spec: { ...now.spec, replicas } });
  }

  async passes(count: number): Promise<void> {
    for (let passes = 0; passes < count; passes += 1) await this.deps.pass();
  }
}

function machineOf(set: string, name: string, change: (m: BuiltMachine) => void = () => undefined): Machine {
  return machine((m) => {
    Object.assign(m.metadata, { name, uid: name });
    m.metadata.labels = { pool: 'a', node: name };
    const owner = machineSet((s) => Object.assign(s.metadata, { name: set, uid: set }));
    m.metadata.ownerReferences = [controllerReference(owner, API_VERSION, 'MachineSet')];
    change(m);
  });
}

/** So many Machines of a set that run. */
function running(set: string, count: number): Machine[] {
  return Array.from({ length: count }, (_, i) =>
    machineOf(set, `${set}-${i}`, (m) => {
      m.status.currentStatus.phase = 'Running';
      m.status.conditions = [{ type: 'Ready', status: 'True' }];
    }),
  );
}

/** One that is being deleted, for as long as its drain takes. */
function going(set: string): Machine {
  return machineOf(set, 'going', (m) => {
    m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    m.metadata.finalizers = [MACHINE_FINALIZER];
  });
}

describe('while a rollback is refused,', () => {
  test.each([
    { replicas: 5, strategy: SURGING, code: 422 },
    { replicas: 1, strategy: SURGING, code: 422 },
    { replicas: 5, strategy: IN_PLACE, code: 403 },
    { replicas: 1, strategy: IN_PLACE, code: 403 },
    { replicas: 5, strategy: SURGING, code: 500 },
  ])('that is told, and the only set is scaled to $replicas ($strategy.type, $code)', async (row) => {
    const scene = new Refused({
      sizes: [0, 3],
      code: row.code,
      change: ({ spec }) => void Object.assign(spec, { replicas: row.replicas, strategy: row.strategy }),
    });

    await scene.passes(4);
    const { result } = await scene.deps.pass();

    expect(result).toBeInstanceOf(ApiError);
    expect(scene.sizes).toEqual([0, row.replicas]);
    expect(scene.deps.machineDeployments.get('default/deployment-1')?.spec.rollbackTo).toEqual({ revision: 1 });
    expect(scene.reason('ReplicaFailure')).toBe('ChangeRefused');
  });

  test.each([
    { sizes: [2, 1], replicas: 3, to: [2, 1], why: 'are enough' },
    { sizes: [2, 1], replicas: 2, to: [2, 0], why: 'shrink' },
    { sizes: [2, 1], replicas: 4, to: [2, 2], why: 'grow where nothing works' },
    { sizes: [2, 1], replicas: 4, works: 'old', to: [3, 1], why: 'grow where something works' },
    { sizes: [2, 1], replicas: 4, works: 'old', strategy: IN_PLACE, to: [2, 2], why: 'grow where nothing is to move' },
    { sizes: [1, 1], replicas: 3, to: [1, 2], why: 'get what is missing' },
    { sizes: [3, 2], replicas: 3, to: [3, 2], why: 'keep what a rollout has made beyond them' },
    { sizes: [3, 2], replicas: 4, to: [3, 2], why: 'keep that' },
    { sizes: [3, 5], replicas: 3, to: [3, 2], why: 'keep no more of it than the surge' },
    { sizes: [2, 3], replicas: 3, works: 'both', to: [2, 3], why: 'keep what the rollback would bring back' },
    {
      sizes: [2, 3],
      replicas: 3,
      works: 'both',
      strategy: SURGING_IN_PLACE,
      to: [2, 3],
      why: 'keep that in place, too',
    },
  ] as const)('sets of $sizes become $to for $replicas replicas: they $why', async (row) => {
    const { sizes } = row;
    const works = 'works' in row ? row.works : undefined;
    const strategy = 'strategy' in row ? row.strategy : SURGING;
    const scene = new Refused({
      sizes,
      change: ({ spec }) => void Object.assign(spec, { replicas: row.replicas, strategy }),
      machines: [
        ...(works === undefined ? [] : running('old', sizes[0])),
        ...(works === 'both' ? running('new', sizes[1]) : []),
      ],
    });

    await scene.passes(5);

    expect(scene.sizes).toEqual(row.to);
  });

  test.each([
    { code: 422, size: 3, replicas: 5 },
    { code: 422, size: 0, replicas: 3 },
    { code: 500, size: 3, replicas: 5 },
  ])('and no set can be created ($code), what there is grows from $size to $replicas', async (row) => {
    const scene = new Refused({
      sizes: [0, row.size],
      change: ({ spec }) => {
        spec.replicas = row.replicas;
        spec.template.spec = UNMADE;
      },
    });
    refuseSets(scene, row.code);

    for (let passes = 0; passes < 8; passes += 1) {
      await scene.deps.pass();
      scene.deps.clock.advance(11_000);
    }

    const [old = 0, present = 0] = scene.sizes;
    expect(old + present).toBe(row.replicas);
  });

  test('and no set can be created, the refusal of the rollback stays told', async () => {
    const scene = new Refused({ sizes: [3, 0], change: ({ spec }) => void (spec.template.spec = UNMADE) });
    refuseSets(scene, 500);

    const told = await scene.told('ReplicaFailure', 11_000);

    expect(new Set(told.slice(4))).toEqual(new Set(['ChangeRefused']));
  });

  test('a Recreate makes no Machine before those of the old set have gone', async () => {
    const scene = new Refused({
      sizes: [0, 0],
      change: ({ spec }) => void Object.assign(spec, { replicas: 3, strategy: RECREATE }),
      machines: [machineOf('old', 'm-1')],
    });

    await scene.passes(5);
    const before = scene.sizes;
    scene.deps.machines.remove('default/m-1');
    await scene.passes(5);

    expect([before, scene.sizes]).toEqual([
      [0, 0],
      [0, 3],
    ]);
  });

  test.each([
    { what: 'has not begun, although a Machine is going', sizes: [3, 0], replicas: 5, to: [5, 0] },
    { what: 'has not begun, although a Machine is going', sizes: [3, 0], replicas: 1, to: [1, 0] },
    { what: 'has not begun, although a Machine is going', sizes: [3, 0], replicas: 0, to: [0, 0] },
    { what: 'has Machines of both templates', sizes: [2, 1], replicas: 4, to: [2, 1] },
    { what: 'has Machines of both templates', sizes: [2, 1], replicas: 3, to: [2, 1] },
    { what: 'has Machines of both templates', sizes: [2, 1], before: 5, replicas: 4, to: [2, 1] },
    { what: 'has Machines of both templates', sizes: [2, 2], replicas: 3, to: [2, 2] },
    { what: 'has Machines of both templates', sizes: [2, 1], replicas: 0, to: [0, 0] },
    { what: 'has Machines of the old template still going', sizes: [0, 2], replicas: 4, to: [0, 2] },
    { what: 'has emptied one of the old sets', sizes: [0, 1, 0], replicas: 3, goes: 'older', to: [0, 1, 0] },
    { what: 'has not begun, and more than is wanted', sizes: [3, 2, 0], replicas: 3, to: [3, 2, 0] },
    { what: 'has begun, and more than is wanted', sizes: [0, 3, 2], replicas: 3, to: [0, 3, 2] },
  ] as const)('a Recreate that $what has sets of $to for $replicas replicas', async (row) => {
    const { sizes, replicas, to } = row;
    const scene = new Refused({
      sizes,
      before: 'before' in row ? row.before : 3,
      change: ({ spec }) => void Object.assign(spec, { replicas, strategy: RECREATE }),
      machines: [
        ...sizes.flatMap((size, i) => running(NAMES.slice(-sizes.length)[i] ?? '', size)),
        going('goes' in row ? row.goes : 'old'),
      ],
    });

    await scene.passes(5);

    expect(scene.sizes).toEqual(to);
  });

  test.each([
    { sizes: [3, 3], raised: 5, lowered: 4, to: [2, 2], why: 'beyond that' },
    { sizes: [3, 2], raised: 5, lowered: 4, to: [2, 2], why: 'as much' },
    { sizes: [2, 2], raised: 5, lowered: 3, to: [2, 1], why: 'less' },
  ] as const)('a Recreate of $sizes gives up what was wanted for a while: it has $why', async (row) => {
    const { sizes } = row;
    const scene = new Refused({
      sizes,
      change: ({ spec }) => void Object.assign(spec, { replicas: row.raised, strategy: RECREATE }),
      machines: [...running('old', sizes[0]), ...running('new', sizes[1])],
    });

    await scene.passes(3);
    const raised = scene.sizes;
    scene.want(row.lowered);
    await scene.passes(3);

    expect([raised, scene.sizes]).toEqual([sizes, row.to]);
  });

  test.each([
    { what: 'its new set exists', template: undefined },
    { what: 'its new set is refused, too', template: UNMADE },
  ])('one that waits for its turn says so until that has come, where $what', async ({ template }) => {
    const scene = new Refused({
      sizes: [3, 0],
      change: (d) => {
        Object.assign(d.metadata.annotations ?? {}, { [UPDATE_ORDER_ANNOTATION]: 'g/1' });
        d.spec.replicas = 3;
        if (template !== undefined) d.spec.template.spec = template;
      },
      machines: running('old', 3),
    });
    if (template !== undefined) refuseSets(scene, 403);
    const first = machineDeployment((d) => {
      Object.assign(d.metadata, { name: 'first', uid: 'first', annotations: { [UPDATE_ORDER_ANNOTATION]: 'g/0' } });
      d.spec.replicas = 2;
    });
    scene.deps.machineDeployments.put(first);

    const told = await scene.told('Progressing', 120_000);
    scene.deps.machineDeployments.remove('default/first');
    const afterwards = await scene.told('Progressing', 120_000);

    expect(new Set(told.slice(3))).toEqual(new Set(['WaitingForUpdateOrder']));
    expect(afterwards).not.toContain('WaitingForUpdateOrder');
  });

  test('one whose turn came long before it is accepted has its time from then on', async () => {
    const scene = new Refused({
      sizes: [0, 3, 0],
      change: ({ metadata, spec }) => {
        Object.assign(metadata.annotations ?? {}, { [UPDATE_ORDER_ANNOTATION]: 'g/1' });
        Object.assign(spec, { strategy: SURGING, progressDeadlineSeconds: 600 });
      },
      machines: running('old', 3),
    });
    const first = machineDeployment((d) => {
      Object.assign(d.metadata, { name: 'first', uid: 'first', annotations: { [UPDATE_ORDER_ANNOTATION]: 'g/0' } });
      d.spec.replicas = 2;
    });
    scene.deps.machineDeployments.put(first);
    await scene.told('Progressing', 120_000);
    scene.deps.machineDeployments.remove('default/first');
    await scene.told('Progressing', 120_000);

    scene.isAccepted = true;
    const told = await scene.told('Progressing', 100_000);

    expect(told.slice(0, 6)).toEqual(Array.from({ length: 6 }, () => 'UpdateOrderReached'));
    expect(told.at(-1)).toBe('ProgressDeadlineExceeded');
  });
});

function refuseSets({ deps }: Refused, code: number): void {
  const reason = code === 500 ? 'InternalError' : 'Invalid';
  deps.client.create = async () => await Promise.reject(new ApiError(code, reason, 'class-9 is retired'));
}
