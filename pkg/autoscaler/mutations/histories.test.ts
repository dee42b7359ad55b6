import { test } from '@jest/globals';
import * as fc from 'fast-check';
import { ServerError, Status } from 'nice-grpc';

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
import { replicasOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import { TRIGGER_DELETION_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../../apis/meta.ts';
import type { CallOptions, ObjectRef, Writer } from '../../kube/client/client.ts';
import { ApiError } from '../../kube/client/errors.ts';
import type { Patch } from '../../kube/client/patch.ts';
import type { Resource } from '../../apis/resource.ts';
import { listedIn, nameIn, namesListed } from '../../controllers/machine-deployment/scaling/scaler-handoff.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { Places } from '../places.ts';
import { missingPlaceholder, placeholderOf } from '../placeholder.ts';
import type { ExternalGrpcNode } from '../gen/clusterautoscaler/cloudprovider/v1/externalgrpc/cloud_provider.ts';
import { RunningChanges } from '../running-changes.ts';
import { mutations, type Mutations } from './index.ts';

/** What the autoscaler names a Machine by: its Node, its placeholder, or the id of an instance of which it sees no Node. */
type NamedBy = 'node' | 'placeholder' | 'instance';

/** What can happen next; numbers choose among what is there. */
type Event =
  /** The autoscaler calls, and waits for no answer to its calls before. */
  | { readonly do: 'increase'; readonly delta: number }
  | { readonly do: 'decrease'; readonly delta: number }
  | { readonly do: 'delete'; readonly which: readonly number[]; readonly by: NamedBy }
  /** A replica without a Machine. */
  | { readonly do: 'cancel'; readonly index: number }
  /** The same call as one before, as after an answer that it did not get. */
  | { readonly do: 'repeat'; readonly which: number }
  /** What is to become of the next requests: both of its halves can be lost. */
  | { readonly do: 'lose'; readonly what: 'request' | 'answer' | 'late' }
  | { readonly do: 'kubectl'; readonly by: number }
  | { readonly do: 'status' }
  /** The controllers: a Machine for each replica, a deletion for each that is listed. */
  | { readonly do: 'create' | 'take' | 'prune' | 'join' | 'fail' | 'gone' | 'see'; readonly which: number }
  /** Time passes: calls go on. */
  | { readonly do: 'run'; readonly steps: number };

const which = fc.nat(30);
const happening: fc.Arbitrary<Event> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('increase' as const), delta: fc.integer({ min: 1, max: 3 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('decrease' as const), delta: fc.integer({ min: -3, max: -1 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('delete' as const),
      which: fc.array(which, { minLength: 1, maxLength: 3 }),
      by: fc.constantFrom<NamedBy>('node', 'placeholder', 'instance'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), index: fc.nat(2) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('repeat' as const), which }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('lose' as const),
      what: fc.constantFrom('request' as const, 'answer' as const, 'late' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('kubectl' as const), by: fc.integer({ min: -2, max: 2 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('status' as const) }) },
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'create' as const,
        'take' as const,
        'prune' as const,
        'join' as const,
        'gone' as const,
        'see' as const,
        'fail' as const,
      ),
      which,
    }),
  },
  { weight: 10, arbitrary: fc.record({ do: fc.constant('run' as const), steps: fc.integer({ min: 1, max: 8 }) }) },
);

test('whatever is lost, repeated or concurrent: each Machine is named once, each size is changed once, and no Node that has joined is given up unasked', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(happening, { maxLength: 60, size: 'max' }), async (events) => {
      const history = new History();
      for (const event of events) await history.happen(event);
      await history.settle();
    }),
    { numRuns: Number(process.env['MACHINIST_HISTORIES'] ?? 100) },
  );
});

/** A change of the MachineDeployment's spec; `call` is undefined for one by kubectl. */
interface Applied {
  readonly call: Call | undefined;
  readonly delta: number;
  readonly names: readonly string[];
}

type Outcome = 'running' | 'done' | 'refused' | 'unknown';

/** A call of the autoscaler. */
interface Call {
  readonly event: Extract<Event, { do: 'increase' | 'decrease' | 'delete' | 'cancel' }>;
  readonly machines: readonly string[];
  /** Whether a Machine had joined when it was read for this call. */
  readonly joined: Map<string, boolean>;
  outcome: Outcome;
}

const GROUP = nodeGroup({ min: 1, max: 8 });

/** What the API server has, what the caches show of it, and calls that go on as their requests are answered, one by one. */
class History {
  readonly #server: BuiltMachineDeployment = machineDeployment(({ spec }) => void (spec.replicas = 3));
  readonly #machines = new Map<string, BuiltMachine>();
  readonly #deps: ReplicasWorld;
  /** The server that leads, and one that led before and does not know it yet. */
  readonly #servers: readonly Mutations[];
  /** What they call replicas without a Machine. */
  readonly #places = [new Places('a'), new Places('b')];
  readonly #calls: Call[] = [];
  readonly #callOf = new Map<AbortSignal, Call>();
  readonly #running: Promise<void>[] = [];
  readonly #applied: Applied[] = [];
  /** Requests that wait for an answer. */
  readonly #requests: (() => void)[] = [];
  /** Patches that nobody waits for any more, and that may arrive all the same. */
  readonly #late: (() => void)[] = [];
  readonly #broken: unknown[] = [];
  #loss: 'request' | 'answer' | 'late' | undefined;
  #next = 0;

  constructor() {
    const set = machineSet(({ metadata }) => {
      metadata.ownerReferences = [controllerReference(this.#server, API_VERSION, 'MachineDeployment')];
    });
    this.#deps = new ReplicasWorld({ deployments: [structuredClone(this.#server)], sets: [set] });
    const { clock, machines, machineSets, machineDeployments, recorder, targets } = this.#deps;
    const membership = membershipOf(this.#deps);
    const changes = new RunningChanges();
    const parts = { clock, machines, machineSets, machineDeployments, recorder, targets, membership, changes };
    const client = { reader: { get: this.#get } as never, writer: { patch: this.#patch } as never };
    this.#servers = this.#places.map((places) => mutations({ ...parts, ...client, places }));
    for (const name of [this.#create(), this.#create(), this.#create()]) {
      this.#join(name);
      this.#see(name);
    }
  }

  async happen(event: Event): Promise<void> {
    this.#deps.clock.advance(300);
    switch (event.do) {
      case 'increase':
      case 'decrease':
        return this.#begin(event, []);
      case 'cancel': {
        // One of those that the server has listed which is asked next.
        const places = pick(this.#places, this.#calls.length + 1);
        const count = Math.max(0, replicasOf(this.#server) - this.#living().length);
        const place = pick(places?.see(this.#server.metadata.uid, count) ?? [], event.index);
        return place === undefined ? undefined : this.#begin(event, [place]);
      }
      case 'delete':
        return this.#begin(
          event,
          event.which.flatMap((i) => pick(this.#deps.machines.list(), i)?.metadata.name ?? []),
        );
      case 'repeat': {
        const before = pick(this.#calls, event.which);
        // Other calls the autoscaler does not repeat: it reads the size first.
        if (before?.event.do === 'delete' || before?.event.do === 'cancel') this.#begin(before.event, before.machines);
        return;
      }
      case 'lose':
        this.#loss = event.what;
        return;
      case 'kubectl': {
        const to = Math.max(0, replicasOf(this.#server) + event.by);
        this.#applied.push({ call: undefined, delta: to - replicasOf(this.#server), names: [] });
        return this.#setReplicas(to);
      }
      case 'status':
        return this.#touch(this.#server);
      case 'create':
        if (this.#living().length < replicasOf(this.#server)) this.#create();
        return;
      case 'take':
        return this.#take(event.which);
      case 'prune':
        return this.#prune();
      case 'join': {
        const pending = this.#living().filter(({ status }) => status.currentStatus.phase === 'Pending');
        return this.#join(pick(pending, event.which)?.metadata.name ?? '');
      }
      case 'fail': {
        const failing = pick(this.#living(), event.which);
        if (failing === undefined) return;
        failing.status.currentStatus.phase = 'Failed';
        return this.#touch(failing);
      }
      case 'gone': {
        const going = [...this.#machines.values()].filter((m) => !this.#living().includes(m));
        this.#machines.delete(pick(going, event.which)?.metadata.name ?? '');
        return;
      }
      case 'see': {
        const names = new Set([...this.#machines.keys(), ...this.#deps.machines.list().map((m) => m.metadata.name)]);
        return this.#see(pick([...names], event.which) ?? '');
      }
      case 'run':
        for (let i = 0; i < event.steps; i++) await this.#answer(i);
        for (const arrive of this.#late.splice(0)) arrive();
        return;
    }
  }

  /** Nothing is lost any more, and all calls end; then what was late arrives. */
  async settle(): Promise<void> {
    this.#loss = undefined;
    for (let i = 0; this.#calls.some(({ outcome }) => outcome === 'running'); i++) {
      must(i < 10_000, 'a call never ends');
      await this.#answer(0);
      this.#deps.clock.advance(100);
    }
    await Promise.all(this.#running);
    for (const arrive of this.#late.splice(0)) arrive();
    this.#judge();
  }

  #judge(): void {
    if (this.#broken.length > 0) throw this.#broken[0];
    const named = this.#applied.flatMap(({ names }) => names);
    must(new Set(named).size === named.length, `named twice: ${named.join(', ')}`);
    const cancelled = this.#applied.flatMap(({ call, delta }) =>
      call?.event.do === 'cancel' && delta !== 0 ? call.machines : [],
    );
    must(new Set(cancelled).size === cancelled.length, `taken back twice: ${cancelled.join(', ')}`);
    for (const call of this.#calls) {
      const own = this.#applied.filter((one) => one.call === call);
      const { event, outcome } = call;
      must(own.length <= 1, `a call was obeyed ${own.length} times`);
      must(outcome !== 'refused' || own.length === 0, 'a call was refused and obeyed');
      for (const { delta, names } of own) {
        if (event.do === 'increase') must(delta === event.delta, 'an increase by another delta');
        if (event.do !== 'increase') must(-delta >= names.length, 'more names than replicas');
        if (event.do === 'delete') must(-delta === names.length, 'a replica that nobody has asked for');
        if (event.do === 'cancel') must(-delta <= 1, 'more replicas than the one that was named');
        if (event.do === 'decrease') must(delta >= event.delta, 'a decrease by more than its delta');
      }
      // By somebody else to the very size is as good.
      const isAsIf = this.#applied.some(({ delta }) => 'delta' in event && delta === event.delta);
      if (event.do === 'increase' && outcome === 'done') must(isAsIf, 'an increase that never was');
    }
  }

  #begin(event: Call['event'], machines: readonly string[]): void {
    const call: Call = { event, machines, joined: new Map(), outcome: 'running' };
    const { signal } = new AbortController();
    this.#callOf.set(signal, call);
    this.#calls.push(call);
    this.#running.push(this.#run(call, signal));
  }

  async #run(call: Call, signal: AbortSignal): Promise<void> {
    const { event, machines } = call;
    const does = pick(this.#servers, this.#calls.length) as Mutations;
    const options = { peer: 'test', signal, leftMs: () => Infinity, report: () => undefined };
    try {
      if (event.do === 'increase') await does.increase(GROUP, event.delta, options);
      else if (event.do === 'decrease') await does.decrease(GROUP, event.delta, options);
      else await does.delete(GROUP, nodesOf(event, machines), options);
      call.outcome = 'done';
    } catch (err) {
      if (!(err instanceof ServerError)) this.#broken.push(err);
      call.outcome = err instanceof ServerError && err.code !== Status.ABORTED ? 'refused' : 'unknown';
    }
  }

  /** One request is answered, and what follows from it happens. */
  async #answer(index: number): Promise<void> {
    const request = this.#requests.splice(index % Math.max(1, this.#requests.length), 1)[0];
    request?.();
    for (let i = 0; i < 30; i++) await Promise.resolve(); // whatever waits for it goes on
    await new Promise(setImmediate);
  }

  readonly #get = (resource: Resource<KubeObject>, { name }: ObjectRef, { signal }: CallOptions): Promise<KubeObject> =>
    this.#ask(() => {
      if (resource.plural === 'machinedeployments') return structuredClone(this.#server);
      const found = this.#machines.get(name);
      if (signal !== undefined)
        this.#callOf.get(signal)?.joined.set(name, found?.status.currentStatus.phase === 'Running');
      if (found === undefined) throw new ApiError(404, 'NotFound', 'gone');
      return structuredClone(found);
    });

  readonly #patch: Writer['patch'] = <T extends KubeObject>(
    _intent: unknown,
    _resource: unknown,
    _ref: unknown,
    patch: Patch,
    { signal }: CallOptions = {},
  ) => {
    const call = signal && this.#callOf.get(signal);
    return this.#ask(() => this.#apply(patch, call), true) as Promise<T>;
  };

  /** Waits for its turn; then it is answered, or its request or answer is lost. */
  #ask<T>(serve: () => T, isWrite = false): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#requests.push(() => {
        const loss = this.#loss;
        this.#loss = undefined;
        const lost = new ApiError(0, 'Unreachable', 'no answer');
        if (loss === 'late' && isWrite) this.#late.push(() => void this.#attempt(serve));
        if (loss === 'answer') this.#attempt(serve);
        if (loss !== undefined && isWrite) return reject(lost);
        const { value, err } = this.#attempt(serve);
        return err === undefined ? resolve(value as T) : reject(err);
      });
    });
  }

  /** Serves a request; what goes wrong is told at the end, whether or not somebody waits for the answer. */
  #attempt<T>(serve: () => T): { value?: T; err?: unknown } {
    try {
      return { value: serve() };
    } catch (err) {
      if (!(err instanceof ApiError)) this.#broken.push(err);
      return { err };
    }
  }

  #apply({ body }: Patch, call: Call | undefined): BuiltMachineDeployment {
    const { metadata, spec } = body as {
      metadata: { resourceVersion: string; annotations?: Record<string, string> };
      spec: { replicas: number };
    };
    if (metadata.resourceVersion !== this.#server.metadata.resourceVersion)
      throw new ApiError(409, 'Conflict', 'changed');
    const before = namesListed(this.#server);
    Object.assign(this.#server.metadata.annotations, metadata.annotations);
    const names = [...namesListed(this.#server)].filter((name) => !before.has(name));
    const isUnasked = call?.event.do !== 'delete' || call.event.by !== 'node';
    for (const name of names) {
      must(
        this.#machines.get(name)?.metadata.deletionTimestamp === undefined || !before.has(name),
        'named while it goes',
      );
      must(!isUnasked || call?.joined.get(name) === false, `${name} had joined`);
    }
    const delta = spec.replicas - replicasOf(this.#server);
    must(delta > 0 ? spec.replicas <= GROUP.max : spec.replicas >= GROUP.min, `a size of ${spec.replicas}`);
    this.#applied.push({ call, delta, names });
    this.#setReplicas(spec.replicas);
    return structuredClone(this.#server);
  }

  #setReplicas(replicas: number): void {
    const { metadata } = this.#server;
    if (replicas !== this.#server.spec.replicas) metadata.generation = (metadata.generation ?? 0) + 1;
    this.#server.spec.replicas = replicas;
    this.#touch(this.#server);
  }

  #touch({ metadata }: { metadata: { resourceVersion: string } }): void {
    metadata.resourceVersion = String(Number(metadata.resourceVersion) + 1);
  }

  #create(): string {
    const name = `m-${this.#next++}`;
    const { uid } = this.#deps.machineSets.list()[0]?.metadata ?? { uid: '' };
    const owner = machineSet(({ metadata }) => void (metadata.uid = uid));
    const created = machine(({ metadata, spec, status }) => {
      Object.assign(metadata, { name, ownerReferences: [controllerReference(owner, API_VERSION, 'MachineSet')] });
      metadata.labels['node'] = name;
      spec.providerID = `sim:///${name}`;
      status.currentStatus.phase = 'Pending';
    });
    this.#machines.set(name, created);
    return name;
  }

  #join(name: string): void {
    const found = this.#machines.get(name);
    if (found === undefined) return;
    found.status.currentStatus.phase = 'Running';
    this.#touch(found);
  }

  #living(): readonly BuiltMachine[] {
    return [...this.#machines.values()].filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  /** A Machine that is listed goes, or one of too many. */
  #take(index: number): void {
    const listed = namesListed(this.#server);
    const living = this.#living();
    const chosen = living.filter(({ metadata }) => listed.has(metadata.name));
    const victim = pick(chosen.length === 0 && living.length > replicasOf(this.#server) ? living : chosen, index);
    if (victim === undefined) return;
    victim.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    this.#touch(victim);
  }

  /** What is on its way out leaves the list. */
  #prune(): void {
    const going = (entry: string): boolean => {
      const found = this.#machines.get(nameIn(entry));
      return found === undefined || found.metadata.deletionTimestamp !== undefined;
    };
    const left = listedIn(this.#server).filter((entry) => !going(entry));
    this.#server.metadata.annotations[TRIGGER_DELETION_ANNOTATION] = left.join(',');
    this.#touch(this.#server);
  }

  /** The watch delivers it, and its Node. */
  #see(name: string): void {
    const found = this.#machines.get(name);
    if (found === undefined) this.#deps.machines.remove(`default/${name}`);
    else this.#deps.machines.put(structuredClone(found));
    const isThere = found?.status.currentStatus.phase === 'Running';
    if (isThere) this.#deps.nodes.put(node((n) => Object.assign(n, { metadata: { ...n.metadata, name, uid: name } })));
    else this.#deps.nodes.remove(name);
  }
}

/** What the autoscaler calls them. */
function nodesOf(event: Extract<Event, { do: 'delete' | 'cancel' }>, machines: readonly string[]): ExternalGrpcNode[] {
  const named = (providerId: string, name: string, annotations = {}): ExternalGrpcNode => ({
    providerId,
    name,
    labels: {},
    annotations,
  });
  const unseen = (id: string): ExternalGrpcNode =>
    named(id, id, { 'k8s.io/cluster-autoscaler/fake-node-reason': 'unregistered' });
  if (event.do === 'cancel') return machines.map((place) => unseen(missingPlaceholder(GROUP.id, place)));
  const nodes = {
    node: (name: string) => named('', name),
    placeholder: (name: string) => unseen(placeholderOf(name)),
    instance: (name: string) => unseen(`sim:///${name}`),
  } as const satisfies Record<NamedBy, unknown>;
  return machines.map(nodes[event.by]);
}

function pick<T>(list: readonly T[], index: number): T | undefined {
  return list[index % Math.max(1, list.length)];
}

function must(isSo: boolean, what: string): void {
  if (!isSo) throw new Error(what);
}
