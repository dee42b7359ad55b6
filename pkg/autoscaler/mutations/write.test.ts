import { describe, expect, test } from '@jest/globals';
import { Status } from 'nice-grpc';

import {
  machine,
  machineDeployment,
  machineSet,
  node,
  type BuiltMachine,
  type BuiltMachineDeployment,
} from '../../../test/builders.ts';
import { ReplicasWorld } from '../../../test/fakes/replicas-world.ts';
import { membershipOf, nodeGroup } from '../../../test/node-group.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import { LAST_SCALER_CHANGE_ANNOTATION, TRIGGER_DELETION_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../../apis/meta.ts';
import { GateClosedError } from '../../kube/gate/gate.ts';
import { ApiError } from '../../kube/client/errors.ts';
import { machineDeployments, machines } from '../../kube/client/resource.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { missingPlaceholder, placeholderOf } from '../placeholder.ts';
import { Places } from '../places.ts';
import type { RpcCall } from '../rpcs.ts';
import { RunningChanges } from '../running-changes.ts';
import { mutations, type Mutations } from './index.ts';

const GROUP = nodeGroup();
const NOW = '2026-01-01T00:00:00Z';
const CONFLICT = new ApiError(409, 'Conflict', 'it has changed');
const LOST = new ApiError(0, 'Unreachable', 'no answer');

/** A group of three Machines m-0 to m-2, the last without a Node, in memory. */
class Scene {
  readonly deps: ReplicasWorld;
  readonly mutations: Mutations;
  readonly places = new Places('x');
  readonly changes = new RunningChanges();
  readonly told: { reason: string; message: string }[] = [];
  leftMs = Infinity;

  constructor(change: (deployment: BuiltMachineDeployment) => void = () => undefined) {
    const deployment = machineDeployment((d) => {
      d.spec.replicas = 3;
      d.metadata.resourceVersion = '7';
      change(d);
    });
    const set = machineSet(({ metadata }) => {
      metadata.ownerReferences = [controllerReference(deployment, API_VERSION, 'MachineDeployment')];
    });
    const members = [0, 1, 2].map((i) =>
      machine((m) => {
        m.metadata.name = `m-${i}`;
        m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
        m.metadata.labels['node'] = `m-${i}`;
        m.spec.providerID = `sim:///m-${i}`;
        if (i === 2) m.status.currentStatus.phase = 'Pending';
      }),
    );
    const nodes = ['m-0', 'm-1'].map((name) =>
      node((n) => {
        n.metadata.name = name;
        n.spec.providerID = `sim:///${name}`;
      }),
    );
    this.deps = new ReplicasWorld({ deployments: [deployment], sets: [set], machines: members, nodes });
    const recorder = {
      event: ({ reason, message }: { reason: string; message: string }) => void this.told.push({ reason, message }),
    };
    const { clock, reader, writer, targets, machineDeployments: cached, machineSets } = this.deps;
    const membership = membershipOf(this.deps);
    this.mutations = mutations({
      clock,
      reader,
      writer,
      targets,
      machineDeployments: cached,
      machineSets,
      machines: this.deps.machines,
      membership,
      places: this.places,
      recorder,
      changes: this.changes,
    });
  }

  get call(): RpcCall {
    const { signal } = new AbortController();
    return { peer: 'ca.example', signal, leftMs: () => this.leftMs, report: () => undefined };
  }

  get writes() {
    return this.deps.client.writes;
  }

  delete(...names: readonly string[]): ReturnType<Mutations['delete']> {
    const nodes = names.map((name) => ({ name, providerId: '', labels: {}, annotations: {} }));
    return this.mutations.delete(GROUP, nodes, this.call);
  }

  /** What the API server has of it, and the cache does not show yet. */
  change<T extends KubeObject>(
    resource: { group: string; plural: string },
    object: T,
    change: (object: T) => void,
  ): void {
    const changed = structuredClone(object);
    change(changed);
    this.deps.client.put(resource, changed);
  }

  machine(name: string): BuiltMachine {
    return this.deps.machines.get(`default/${name}`) as BuiltMachine;
  }
}

describe('replicas without a Machine', () => {
  const uid = machineDeployment().metadata.uid;
  const SIZE = 5;
  const large = (): Scene => new Scene(({ spec }) => void (spec.replicas = SIZE));
  const cancel = (scene: Scene, ...places: readonly string[]): ReturnType<Mutations['delete']> => {
    const nodes = places.map((place) => ({
      name: '',
      providerId: missingPlaceholder(GROUP.id, place),
      labels: {},
      annotations: {},
    }));
    return scene.mutations.delete(GROUP, nodes, scene.call);
  };
  /** How many Machines the Scene has. */
  const machinesOf = (scene: Scene): number => scene.deps.machines.list().length;

  test('are taken back one by one, by name: those before and after keep theirs, and a repetition finds nothing to do', async () => {
    const scene = large();
    const [first = '', second = '', ...others] = scene.places.see(uid, SIZE - machinesOf(scene));

    await expect(cancel(scene, first)).resolves.toMatchObject({ before: SIZE, after: SIZE - 1, machines: [] });
    await expect(cancel(scene, first)).resolves.toMatchObject({ before: SIZE - 1, after: SIZE - 1 });

    expect(scene.places.see(uid, SIZE - 1 - machinesOf(scene))).toEqual([second, ...others]);
    expect(scene.writes).toHaveLength(1);
  });

  test('that another takes the place of are not taken back again', async () => {
    const scene = large();
    const [first = ''] = scene.places.see(uid, SIZE - machinesOf(scene));
    await cancel(scene, first);
    await scene.mutations.increase(GROUP, 1, scene.call);

    await expect(cancel(scene, first)).resolves.toMatchObject({ before: SIZE, after: SIZE });
  });

  test('that were asked for in vain are the first that are gone when there are fewer', async () => {
    const scene = large();
    const [first = '', second = '', ...others] = scene.places.see(uid, SIZE - machinesOf(scene));
    scene.deps.client.failures.push(new ApiError(403, 'Forbidden', 'no'));
    await expect(cancel(scene, second)).rejects.toThrow('no');
    // Somebody has done it all the same.
    await scene.mutations.decrease(GROUP, -1, scene.call);

    await expect(cancel(scene, second)).resolves.toMatchObject({ before: SIZE - 1, after: SIZE - 1 });
    expect(scene.places.see(uid, SIZE - 1 - machinesOf(scene))).toEqual([first, ...others]);
  });
});

describe('a decision is one write', () => {
  test('of size, names and time, after what is listed already, for the version that was read', async () => {
    const scene = new Scene(({ metadata }) => void (metadata.annotations[TRIGGER_DELETION_ANNOTATION] = 'm-9~t'));

    await expect(scene.delete('m-0', 'm-1')).resolves.toEqual({ before: 3, after: 1, machines: ['m-0', 'm-1'] });

    expect(scene.writes).toEqual([
      expect.objectContaining({
        what: 'machinedeployments/deployment-1',
        intent: 'destroy',
        clusters: ['target'],
        resourceVersion: '7',
        body: {
          metadata: {
            annotations: {
              [TRIGGER_DELETION_ANNOTATION]: `m-9~t,m-0~${NOW},m-1~${NOW}`,
              [LAST_SCALER_CHANGE_ANNOTATION]: NOW,
            },
          },
          spec: { replicas: 1 },
        },
      }),
    ]);
  });

  test('of the size alone when more are wanted', async () => {
    const scene = new Scene();

    await expect(scene.mutations.increase(GROUP, 2, scene.call)).resolves.toMatchObject({ before: 3, after: 5 });

    expect(scene.writes).toEqual([
      expect.objectContaining({
        intent: 'change',
        clusters: [],
        resourceVersion: '7',
        body: { spec: { replicas: 5 } },
      }),
    ]);
  });

  test('that destroys when replicas are only taken back: their set decides what goes', async () => {
    const scene = new Scene(({ spec }) => void (spec.replicas = 5));

    await scene.mutations.decrease(GROUP, -1, scene.call);

    expect(scene.writes).toEqual([expect.objectContaining({ intent: 'destroy', body: { spec: { replicas: 4 } } })]);
  });

  test.each([
    { title: 'there is nothing to do', run: (scene: Scene) => scene.delete('gone'), code: undefined },
    {
      title: 'it is refused',
      run: (s: Scene) => s.mutations.increase(GROUP, 9, s.call),
      code: Status.FAILED_PRECONDITION,
    },
  ])('or none when $title', async ({ run, code }) => {
    const scene = new Scene();

    const outcome = await run(scene).then(
      () => undefined,
      (err: { code: Status }) => err.code,
    );

    expect(outcome).toBe(code);
    expect(scene.writes).toEqual([]);
  });
});

test.each([
  { title: 'increase', begin: (s: Scene) => s.mutations.increase(GROUP, 1, s.call) },
  { title: 'deletion', begin: (s: Scene) => s.delete('m-0') },
  { title: 'decrease', begin: (s: Scene) => s.mutations.decrease(GROUP, -1, s.call) },
])('$title: it is waited for when changes are to end, and none begins any more', async ({ begin }) => {
  const scene = new Scene();
  const order: string[] = [];

  const running = begin(scene).then(() => order.push('changed'));
  const closed = scene.changes.close().then(() => order.push('closed'));
  await expect(begin(scene)).rejects.toMatchObject({ code: Status.UNAVAILABLE });
  await Promise.all([running, closed]);

  expect(order).toEqual(['changed', 'closed']);
  expect(scene.writes).toHaveLength(1);
});

describe('before it is written', () => {
  test('a Machine that is on its way out, which the cache does not show yet, is found gone', async () => {
    const scene = new Scene();
    scene.change(machines, scene.machine('m-0'), ({ metadata }) => void (metadata.deletionTimestamp = NOW));

    await expect(scene.delete('m-0')).resolves.toMatchObject({ before: 3, after: 3 });
    expect(scene.writes).toEqual([]);
  });

  test('a Machine that runs meanwhile, which the cache does not show yet, is kept', async () => {
    const scene = new Scene();
    const pending = [{ providerId: placeholderOf('m-2'), name: '', labels: {}, annotations: {} }];
    scene.change(machines, scene.machine('m-2'), ({ status }) => void (status.currentStatus.phase = 'Running'));

    await expect(scene.mutations.delete(GROUP, pending, scene.call)).rejects.toMatchObject({
      code: Status.FAILED_PRECONDITION,
    });
    await expect(scene.mutations.decrease(GROUP, -1, scene.call)).rejects.toMatchObject({
      code: Status.FAILED_PRECONDITION,
    });
    expect(scene.writes).toEqual([]);
  });

  test('Machines whose Nodes the autoscaler does not see, as those of another cluster, are kept', async () => {
    const scene = new Scene();
    const annotations = { 'k8s.io/cluster-autoscaler/fake-node-reason': 'unregistered' };
    const unseen = ['sim:///m-1', 'sim:///m-0'].map((id) => ({ providerId: id, name: id, labels: {}, annotations }));

    await expect(scene.mutations.delete(GROUP, unseen, scene.call)).rejects.toMatchObject({
      code: Status.FAILED_PRECONDITION,
      details: expect.stringMatching(/^nodes of group \S+ have joined, and the autoscaler does not see them: /),
    });
    expect(scene.writes).toEqual([]);
  });

  test.each([{ leftMs: 500 }, { leftMs: -1 }])(
    'there must be time for an answer: $leftMs ms are too few',
    async ({ leftMs }) => {
      const scene = new Scene();
      scene.leftMs = leftMs;

      await expect(scene.delete('m-0')).rejects.toMatchObject({
        code: Status.DEADLINE_EXCEEDED,
        details: expect.stringContaining('the call timed out before anything was written'),
      });
      expect(scene.writes).toEqual([]);
    },
  );

  test('the group must be there', async () => {
    const scene = new Scene();
    scene.deps.client.readFailure = new ApiError(404, 'NotFound', 'gone');

    await expect(scene.delete('m-0')).rejects.toMatchObject({ code: Status.NOT_FOUND });
  });
});

describe('when it is not written', () => {
  test('because somebody else has changed the group, it is decided about again', async () => {
    const scene = new Scene();
    scene.deps.client.failures.push(CONFLICT, CONFLICT);

    await scene.delete('m-0');

    expect(scene.writes).toHaveLength(3);
    expect(scene.deps.client.reads.filter((what) => what === 'machinedeployments/deployment-1')).toHaveLength(3);
  });

  test('because it may not be, that is the answer', async () => {
    const scene = new Scene();
    const forbidden = new ApiError(403, 'Forbidden', 'no');
    scene.deps.client.failures.push(forbidden);

    await expect(scene.delete('m-0')).rejects.toBe(forbidden);
    expect(scene.writes).toHaveLength(1);
  });

  test('as far as anybody knows, the same is written again for the same version', async () => {
    const scene = new Scene();
    scene.deps.client.failures.push(LOST);

    await expect(scene.mutations.increase(GROUP, 1, scene.call)).resolves.toMatchObject({ after: 4 });
    expect(scene.writes.map(({ resourceVersion, body }) => ({ resourceVersion, body }))).toEqual([
      { resourceVersion: '7', body: { spec: { replicas: 4 } } },
      { resourceVersion: '7', body: { spec: { replicas: 4 } } },
    ]);
  });

  test('as far as anybody knows, and the group was changed since, an increase is not guessed at', async () => {
    const scene = new Scene();
    scene.deps.client.failures.push(LOST, CONFLICT);
    const [deployment] = scene.deps.machineDeployments.list();
    const answer = scene.mutations.increase(GROUP, 1, scene.call);
    scene.change(machineDeployments, deployment as BuiltMachineDeployment, ({ metadata, spec }) => {
      Object.assign(metadata, { resourceVersion: '9', generation: 3 });
      spec.replicas = 4;
    });

    await expect(answer).rejects.toMatchObject({ code: Status.ABORTED });
  });
});

test('as far as anybody knows, and the gate has closed since, nobody is told that nothing was changed', async () => {
  const scene = new Scene();
  scene.deps.client.failures.push(LOST, new GateClosedError('fenced', undefined, 'leadership may have been lost'));

  await expect(scene.mutations.increase(GROUP, 1, scene.call)).rejects.toMatchObject({
    code: Status.UNAVAILABLE,
    details: expect.stringMatching(/did not confirm whether it changed group .*leadership may have been lost/),
  });
});

test('a client that waits for ever does not keep a call from its end', async () => {
  const scene = new Scene();
  const { client, clock } = scene.deps;
  let tries = 0;
  client.patch = () => {
    clock.advance(10_000);
    tries += 1;
    return Promise.reject(tries < 10 ? LOST : new Error('it was tried too often'));
  };

  await expect(scene.mutations.increase(GROUP, 1, scene.call)).rejects.toMatchObject({
    code: Status.DEADLINE_EXCEEDED,
    details: expect.stringContaining('did not confirm in time'),
  });
});

test('what turns out to have been written is seen at once, as if it had been answered', async () => {
  const scene = new Scene();
  scene.deps.client.failures.push(LOST, CONFLICT);
  const [deployment] = scene.deps.machineDeployments.list();
  const answer = scene.delete('m-0');
  scene.change(machineDeployments, deployment as BuiltMachineDeployment, ({ metadata, spec }) => {
    Object.assign(metadata, { resourceVersion: '9', generation: 3 });
    metadata.annotations[TRIGGER_DELETION_ANNOTATION] = `m-0~${NOW}`;
    spec.replicas = 2;
  });

  await expect(answer).resolves.toEqual({ before: 3, after: 2, machines: ['m-0'] });
  expect(scene.deps.machineDeployments.list()[0]?.spec.replicas).toBe(2);
});

test('what was written and obeyed already, and not answered, is told as done', async () => {
  const scene = new Scene();
  const { client } = scene.deps;
  const [deployment] = scene.deps.machineDeployments.list();
  client.patch = () => {
    scene.change(machineDeployments, deployment as BuiltMachineDeployment, ({ metadata, spec }) => {
      Object.assign(metadata, { resourceVersion: '9', generation: 5 });
      spec.replicas = 4;
    });
    scene.change(machines, scene.machine('m-0'), ({ metadata }) => void (metadata.deletionTimestamp = NOW));
    return Promise.reject(LOST);
  };

  await expect(scene.delete('m-0')).resolves.toEqual({ before: 3, after: 2, machines: ['m-0'] });
});

test('what may have been written in part, and of which the rest would be refused, is not told as refused', async () => {
  const scene = new Scene();
  const [deployment] = scene.deps.machineDeployments.list();
  scene.deps.client.patch = () => {
    scene.change(machineDeployments, deployment as BuiltMachineDeployment, ({ metadata, spec }) => {
      Object.assign(metadata, { resourceVersion: '9', generation: 5 });
      spec.replicas = 1;
    });
    return Promise.reject(LOST);
  };

  await expect(scene.delete('m-0')).rejects.toMatchObject({ code: Status.ABORTED });
  expect(scene.told).toEqual([]);
});

test.each([
  {
    what: 'a webhook refuses',
    err: new ApiError(403, 'Forbidden', 'admission webhook "w" denied the request: no'),
    told: 1,
  },
  {
    what: 'a rule of the API server refuses',
    err: new ApiError(422, 'Invalid', 'spec.replicas: Invalid value'),
    told: 1,
  },
  { what: 'the API server has too much to do for', err: new ApiError(429, 'TooManyRequests', 'later'), told: 0 },
])('what $what is told of by $told Events', async ({ err, told }) => {
  const scene = new Scene();
  scene.deps.client.failures.push(err);

  await expect(scene.delete('m-0')).rejects.toBe(err);

  const message = `Refused to scale down for autoscaler ca.example: ${err.message}`;
  expect(scene.told).toEqual(told === 0 ? [] : [{ reason: 'ScaleDownRefused', message }]);
});

test('Events say what an autoscaler has brought about, and what it was refused', async () => {
  const scene = new Scene();

  await scene.delete('m-0');
  await scene.delete('m-0');
  await scene.delete('m-1', 'm-2').catch(() => undefined);

  expect(scene.told).toEqual([
    { reason: 'ScaleDownAccepted', message: 'Autoscaler ca.example scaled down: size 3 -> 2, without m-0' },
    {
      reason: 'ScaleDownRefused',
      message: expect.stringMatching(/^Refused to scale down for autoscaler ca\.example: group .* has 2 replicas/),
    },
  ]);
});
