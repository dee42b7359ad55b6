import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';

import {
  LAST_SCALER_CHANGE_ANNOTATION,
  MARKED_FOR_DELETION_TIME_ANNOTATION,
  TRIGGER_DELETION_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { MachinePhase } from '../../apis/machine/v1alpha1/phases.ts';
import { Store } from '../../kube/cache/store.ts';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { fromTimestamp, toTimestamp } from '../../base/clock/clock.ts';
import {
  machine,
  machineDeployment,
  machineSet,
  type BuiltMachine,
  type BuiltMachineDeployment,
  type BuiltMachineSet,
} from '../../../test/builders.ts';
import { Expectations } from '../../work/reconcile/expectations.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../../operator/indexes/owner-index.ts';
import { CreationBrake } from '../replicas/creation-brake.ts';
import { isCrowded, replacedAmong, roomFor } from '../machine-set/creation-room.ts';
import { isAvailable, isPreservedFailed, isTerminating } from '../replicas/machine-state.ts';
import { planReplicas, type ReplicaPlan } from '../replicas/replica-plan.ts';
import { newSetFor } from './sets/create-set.ts';
import { newSetChange, sizeNotes } from './sets/new-set.ts';
import { growNewSet, shrinkOldSets } from './rollout/rolling.ts';
import { missingScalerMarks, readHandoff, scalerTimeFor, strayMarks } from './scaling/scaler-handoff.ts';
import { isScalingEvent, scale, replaceNamed, type ScalingFacts } from './scaling/scaling.ts';
import { EMPTY_SET, type Resizes } from './sets/set-facts.ts';
import { leastAvailable } from '../replicas/limits.ts';
import { grownSize } from './scaling/size-rule.ts';
import { observeDeployment, type Observed } from './observed.ts';
import { isPreserved, preservedUntilMs } from '../machine-facts/preserved.ts';

/** What can happen next; numbers choose among what is there. */
type Event =
  | { readonly do: 'scale'; readonly to: number }
  | { readonly do: 'roll' | 'pause' | 'resume' | 'freeze' | 'thaw' | 'swing' | 'calm' | 'refuse' | 'allow' }
  | { readonly do: 'limit'; readonly surge: number; readonly unavailable: number }
  | {
      readonly do: 'run' | 'fail' | 'ail' | 'keep' | 'gone' | 'see' | 'name' | 'unname' | 'prefer';
      readonly which: number;
    }
  | { readonly do: 'seeSpec' }
  | { readonly do: 'deployment' | 'sets'; readonly writes: number };

const which = fc.nat(40);
const weighted = (weight: number, arbitrary: fc.Arbitrary<Event>): fc.WeightedArbitrary<Event> => ({
  weight,
  arbitrary,
});
const happening: fc.Arbitrary<Event> = fc.oneof(
  weighted(2, fc.record({ do: fc.constant('scale' as const), to: fc.nat(8) })),
  weighted(1, fc.record({ do: fc.constantFrom('roll' as const, 'pause' as const, 'resume' as const) })),
  weighted(1, fc.record({ do: fc.constantFrom('freeze' as const, 'thaw' as const) })),
  weighted(1, fc.record({ do: fc.constantFrom('swing' as const, 'calm' as const) })),
  weighted(1, fc.record({ do: fc.constantFrom('refuse' as const, 'allow' as const) })),
  weighted(1, fc.record({ do: fc.constant('limit' as const), surge: fc.nat(4), unavailable: fc.nat(4) })),
  weighted(6, fc.record({ do: fc.constantFrom('run' as const, 'gone' as const), which })),
  weighted(6, fc.record({ do: fc.constant('see' as const), which })),
  weighted(
    2,
    fc.record({
      do: fc.constantFrom('fail' as const, 'keep' as const, 'ail' as const, 'name' as const, 'prefer' as const),
      which,
    }),
  ),
  weighted(1, fc.record({ do: fc.constant('unname' as const), which })),
  weighted(4, fc.record({ do: fc.constant('seeSpec' as const) })),
  // Passes that may die after any of their writes.
  weighted(8, fc.record({ do: fc.constantFrom('deployment' as const, 'sets' as const), writes: fc.nat(6) })),
);

test('whatever happens, in whatever order it is seen: never too many, never too few, each deletion with a reason, and an end', () => {
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 120, size: 'max' }), (events) => {
      const history = new History();
      for (const event of events) history.happen(event);
      history.settle();

      expect(history.outcome()).toEqual(history.wanted());
      expect(history.namedAndAlive()).toEqual([]);
    }),
    { numRuns: Number(process.env['MACHINIST_HISTORIES'] ?? 200) },
  );
});

test('a machine that a person would give up first does not hide that another one is unavailable', () => {
  const history = new History();
  const shrink = { do: 'limit', surge: 1, unavailable: 0 } as const;
  for (const event of [shrink, { do: 'scale', to: 3 } as const, { do: 'seeSpec' } as const]) history.happen(event);
  history.settle();
  for (const event of [
    { do: 'prefer', which: 0 },
    { do: 'ail', which: 1 },
    { do: 'roll' },
    { do: 'seeSpec' },
  ] as const) {
    history.happen(event);
  }
  history.settle();

  expect(history.outcome()).toEqual(history.wanted());
});

test('a failed machine that is preserved does not hold up a rollout that leaves none unavailable', () => {
  const history = new History();
  const few = { do: 'limit', surge: 1, unavailable: 0 } as const;
  for (const event of [few, { do: 'scale', to: 3 } as const, { do: 'seeSpec' } as const]) history.happen(event);
  history.settle();
  for (const event of [{ do: 'keep', which: 1 }, { do: 'roll' }, { do: 'seeSpec' }] as const) history.happen(event);
  history.settle();

  expect(history.outcome()).toEqual(history.wanted());
});

test('a rollout of which a new machine has failed and is preserved waits for its release when none may be unavailable', () => {
  const history = new History();
  for (const event of [
    { do: 'deployment', writes: 1 },
    { do: 'sets', writes: 1 },
    { do: 'roll' },
    { do: 'seeSpec' },
    { do: 'deployment', writes: 1 },
    { do: 'sets', writes: 2 },
    { do: 'keep', which: 2 },
  ] as const) {
    history.happen(event);
  }
  history.settle({ isReleasing: false });
  expect(history.outcome()).toEqual({ machines: ['c0', 'c0', 'c1'], sizes: [2, 1] });

  history.settle();
  expect(history.outcome()).toEqual(history.wanted());
});

test('a pool whose new set nobody may create has as many machines of the old ones as are wanted, and is rolled out later', () => {
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 60, size: 'max' }), fc.nat(8), (events, replicas) => {
      const history = new History();
      for (const event of [{ do: 'deployment', writes: 1 } as const, ...events]) history.happen(event);
      history.happen({ do: 'refuse' });
      history.rollTo('another');
      history.settle({ isAllowed: false, rounds: 15 });
      history.happen({ do: 'scale', to: replicas });
      history.settle({ isAllowed: false, rounds: 15 });

      const { count, most } = history.total();
      expect({ replicas, isEnough: count >= replicas, isTooMany: count > most }).toMatchObject({
        isEnough: true,
        isTooMany: false,
      });
      history.settle();
      expect(history.outcome()).toEqual(history.wanted());
    }),
    { numRuns: Number(process.env['MACHINIST_HISTORIES'] ?? 200) / 4 },
  );
});

/**
 * What the API server has, what the caches show of it, and the decisions of both controllers, each applied write by write: a
 * write names the version that it follows from and fails when that is old; its answer is seen at once, the writes of others
 * are not.
 */
class History {
  readonly #clock = new FakeClock();
  #deployment: BuiltMachineDeployment = machineDeployment((d) => {
    d.metadata.name = 'd';
    d.metadata.uid = 'd';
    d.spec.replicas = 2;
    d.spec.template = { metadata: { labels: { pool: 'a' } }, spec: { class: { kind: 'MachineClass', name: 'c0' } } };
  });
  #seenDeployment = structuredClone(this.#deployment);
  readonly #machines = new Map<string, BuiltMachine>();
  readonly #seenMachines = new Store<Machine>({ [CONTROLLER_INDEX]: controllerIndex });
  /** Written by us alone, so always seen. */
  readonly #sets = new Store<MachineSet>({ [CONTROLLER_INDEX]: controllerIndex });
  readonly #named = new Set<string>();
  /** Named once, taken back, and nobody had acted upon it when that was seen. */
  readonly #spared = new Set<string>();
  readonly #deleted = new Set<string>();
  #isFrozen = false;
  #isSwinging = false;
  /** Nobody may create sets. */
  #isRefused = false;
  #next = 0;
  #writesLeft = Infinity;

  get #deps(): Parameters<typeof observeDeployment>[0] & Parameters<typeof roomFor>[0] {
    const machineDeployments = {
      get: () => this.#seenDeployment,
      list: () => [this.#seenDeployment],
      byIndex: () => [],
    };
    const brake = new CreationBrake({ clock: this.#clock });
    return {
      machineSets: this.#sets,
      machines: this.#seenMachines,
      machineDeployments,
      expectations: new Expectations({ clock: this.#clock }),
      brake,
      clock: this.#clock,
    } as never;
  }

  happen(event: Event): void {
    this.#clock.advance(400); // marks are whole seconds: two choices may be of the same one
    this.#writesLeft = Infinity;
    switch (event.do) {
      case 'scale':
        return this.#changeSpec(({ spec }) => (spec.replicas = event.to));
      case 'roll':
        return this.#roll();
      case 'pause':
      case 'resume':
        return this.#changeSpec(({ spec }) => (spec.paused = event.do === 'pause'));
      case 'freeze':
      case 'thaw':
        this.#isFrozen = event.do === 'freeze';
        return;
      case 'swing':
      case 'calm':
        this.#isSwinging = event.do === 'swing';
        return;
      case 'refuse':
      case 'allow':
        this.#isRefused = event.do === 'refuse';
        return;
      case 'limit':
        return this.#changeSpec(({ spec }) => {
          const { surge: maxSurge, unavailable: maxUnavailable } = event;
          spec.strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable } };
        });
      case 'run':
      case 'fail':
      case 'ail': {
        const chosen = this.#pick(event.which, (m) => !isTerminating(m));
        const phase = { run: 'Running', fail: 'Failed', ail: 'Unknown' }[event.do] as MachinePhase;
        return this.#changeMachine(chosen, (m) => {
          m.status.currentStatus.phase = phase;
        });
      }
      case 'keep': {
        const chosen = this.#pick(event.which, (m) => !isTerminating(m) && !this.#named.has(m.metadata.name));
        return this.#changeMachine(chosen, (m) => {
          m.status.currentStatus = { phase: 'Failed', preserveExpiryTime: toTimestamp(this.#clock.now() + 1e9) };
        });
      }
      case 'prefer':
        return this.#changeMachine(
          this.#pick(event.which, () => true),
          (m) => {
            m.metadata.annotations['machinepriority.machine.sapcloud.io'] = '2';
          },
        );
      case 'gone':
        this.#machines.delete(this.#pick(event.which, isTerminating)?.metadata.name ?? '');
        return;
      case 'see':
        return this.#see(event.which);
      case 'seeSpec':
        this.#seenDeployment = structuredClone(this.#deployment);
        this.#spareUntold();
        return;
      case 'unname':
        return this.#unname(event.which);
      case 'name':
        return this.#name(event.which);
      case 'deployment':
      case 'sets':
        this.#writesLeft = event.writes;
        return event.do === 'deployment' ? this.#deploymentPass() : this.#setPasses();
    }
  }

  /**
   * Nothing goes wrong any more, everything is seen, and both controllers run until nothing changes. When a rollout waits for new
   * machines that failed and are preserved, somebody releases them.
   */
  settle({ isReleasing = true, isAllowed = true, rounds = 80 } = {}): void {
    this.happen({ do: 'resume' });
    this.happen({ do: 'thaw' });
    this.happen({ do: 'calm' });
    if (isAllowed) this.happen({ do: 'allow' });
    // Three rounds at the end: what is reached must also last.
    for (let i = 0, reached = 0; i < rounds && reached < 3; i++) {
      reached = isDeepEqual(this.outcome(), this.wanted()) ? reached + 1 : 0;
      this.happen({ do: 'seeSpec' });
      this.#seeAll();
      this.happen({ do: 'deployment', writes: Infinity });
      this.happen({ do: 'sets', writes: Infinity });
      const held = isReleasing ? this.#heldBack() : [];
      for (const [name, m] of this.#machines) {
        if (isTerminating(m)) this.#machines.delete(name);
        else if (held.includes(m))
          this.#changeMachine(m, (changed) => delete changed.status.currentStatus.preserveExpiryTime);
        else if (m.status.currentStatus.phase !== 'Running' && !isPreservedFailed(m)) {
          this.#changeMachine(m, (changed) => (changed.status.currentStatus.phase = 'Running'));
        }
      }
    }
  }

  /** The new machines that failed and are preserved, when they leave no room to replace the old ones that are left. */
  #heldBack(): BuiltMachine[] {
    const { limits, newSet } = observeDeployment(this.#deps, this.#seenDeployment);
    const isNew = (m: BuiltMachine): boolean => m.metadata.ownerReferences?.[0]?.uid === newSet?.metadata.uid;
    const held = [...this.#machines.values()].filter((m) => isNew(m) && isPreservedFailed(m));
    const isRollout = [...this.#machines.values()].some((m) => !isNew(m));
    // Without a surge the one that is being replaced is missing too.
    const missing = held.length + (limits.surge === 0 ? 1 : 0);
    return isRollout && missing > limits.unavailable ? held : [];
  }

  outcome(): unknown {
    const machines = [...this.#machines.values()].map(({ spec }) => spec.class?.name);
    return {
      machines,
      sizes: this.#sets
        .list()
        .map(({ spec }) => spec.replicas)
        .filter((size) => size !== 0),
    };
  }

  wanted(): unknown {
    const { replicas = 0, template } = this.#deployment.spec;
    return { machines: Array(replicas).fill(template.spec?.class?.name), sizes: replicas === 0 ? [] : [replicas] };
  }

  total(): { readonly count: number; readonly most: number } {
    const { replicas, surge } = observeDeployment(this.#deps, this.#deployment).limits;
    return { count: this.#machines.size, most: replicas + surge };
  }

  namedAndAlive(): string[] {
    return [...this.#named].filter((name) => this.#machines.has(name));
  }

  #changeSpec(change: (d: BuiltMachineDeployment) => unknown): void {
    change(this.#deployment);
    this.#touch(this.#deployment);
  }

  #roll(): void {
    this.rollTo(`c${this.#next++ % 3}`);
  }

  rollTo(name: string): void {
    this.#changeSpec(({ spec }) => {
      spec.template = { ...spec.template, spec: { class: { kind: 'MachineClass', name } } };
    });
  }

  /** What the autoscaler does: one update of the list, the time and the replicas. */
  #name(index: number): void {
    const isNameable = (m: BuiltMachine): boolean =>
      !isTerminating(m) && m.status.currentStatus.phase !== 'Failed' && preservedUntilMs(m) === undefined;
    const chosen = this.#pick(index, isNameable);
    if (chosen === undefined || this.#named.has(chosen.metadata.name)) return;
    this.#named.add(chosen.metadata.name);
    const now = toTimestamp(this.#clock.now());
    this.#changeSpec(({ metadata: { annotations }, spec }) => {
      const list = [annotations[TRIGGER_DELETION_ANNOTATION] ?? '', `${chosen.metadata.name}~${now}`];
      annotations[TRIGGER_DELETION_ANNOTATION] = list.filter((entry) => entry !== '').join(',');
      annotations[LAST_SCALER_CHANGE_ANNOTATION] = now;
      spec.replicas = Math.max(0, (spec.replicas ?? 0) - 1);
    });
  }

  /** The autoscaler takes one of its choices back, with the replica. */
  #unname(index: number): void {
    const { annotations } = this.#deployment.metadata;
    const list = (annotations[TRIGGER_DELETION_ANNOTATION] ?? '').split(',').filter((entry) => entry !== '');
    const gone = list[index % Math.max(1, list.length)];
    if (gone === undefined) return;
    this.#named.delete(gone.split('~')[0] ?? '');
    this.#changeSpec(({ metadata, spec }) => {
      const rest = list.filter((entry) => entry !== gone).join(',');
      if (rest === '') delete metadata.annotations[TRIGGER_DELETION_ANNOTATION];
      else metadata.annotations[TRIGGER_DELETION_ANNOTATION] = rest;
      spec.replicas = (spec.replicas ?? 0) + 1;
    });
  }

  /** From now on nothing deletes as named what is on no list, unless its set was told already. */
  #spareUntold(): void {
    for (const { metadata } of this.#machines.values()) {
      const mark = fromTimestamp(metadata.annotations[MARKED_FOR_DELETION_TIME_ANNOTATION]);
      const set = this.#sets.list().find(({ metadata: { uid } }) => uid === metadata.ownerReferences?.[0]?.uid);
      const known = fromTimestamp(set?.metadata.annotations?.[LAST_SCALER_CHANGE_ANNOTATION]) ?? -Infinity;
      if (this.#named.has(metadata.name)) this.#spared.delete(metadata.name);
      else if (mark === undefined || mark > known) this.#spared.add(metadata.name);
    }
  }

  #touch(object: { metadata: { resourceVersion: string } }): void {
    object.metadata.resourceVersion = String(Number(object.metadata.resourceVersion) + 1);
  }

  #pick(index: number, isMeant: (m: BuiltMachine) => boolean): BuiltMachine | undefined {
    const meant = [...this.#machines.values()].filter(isMeant);
    return meant[index % Math.max(1, meant.length)];
  }

  #changeMachine(m: BuiltMachine | undefined, change: (m: BuiltMachine) => unknown): void {
    if (m === undefined) return;
    change(m);
    this.#touch(m);
  }

  #see(index: number): void {
    const seen = this.#seenMachines.list();
    const names = [...new Set([...seen.map(({ metadata }) => metadata.name), ...this.#machines.keys()])];
    this.#seeMachine(names[index % Math.max(1, names.length)]);
  }

  #seeAll(): void {
    for (const { metadata } of this.#seenMachines.list()) this.#seeMachine(metadata.name);
    for (const name of this.#machines.keys()) this.#seeMachine(name);
  }

  #seeMachine(name = ''): void {
    const m = this.#machines.get(name);
    if (m === undefined) this.#seenMachines.remove(`default/${name}`);
    else this.#seenMachines.put(structuredClone(m));
  }

  /** Whether the process lives on to make another write. */
  #mayWrite(): boolean {
    if (this.#writesLeft <= 0) return false;
    this.#writesLeft -= 1;
    return true;
  }

  #deploymentPass(): void {
    if (!this.#takeHandoff()) return;
    if (!this.#bringNewSetInStep()) return;
    const observed = observeDeployment(this.#deps, this.#seenDeployment);
    const facts = this.#factsFor(observed);
    if (facts.isPaused || isScalingEvent(facts)) {
      const { sizes, noted } = scale(facts);
      const hasScaled = this.#resize(observed, sizes, noted);
      if (facts.isPaused || hasScaled || !this.#isFrozen) return;
    }
    const told = replaceNamed(facts);
    if (this.#resize(observed, told.sizes, told.noted)) return;
    const { newSet, oldSets } = observed.facts;
    if (newSet === undefined) {
      if (this.#isFrozen) return;
      if (!this.#isRefused) return this.#createSet(observed, grownSize(EMPTY_SET, oldSets, observed.limits));
      const { sizes, noted } = scale({ ...facts, isPaused: true });
      this.#resize(observed, sizes, noted);
      return;
    }
    const grown = growNewSet(newSet, oldSets, observed.limits, this.#isFrozen);
    // A new set that is larger than desired shrinks as in any scale-down: what a person would give up first goes, and what
    // somebody preserves goes last, whatever that leaves available.
    must(
      (grown.get(newSet.name) ?? Infinity) >= Math.min(newSet.size, observed.limits.replicas),
      'a size below desired',
    );
    if (this.#resize(observed, grown)) return;
    const shrunk = shrinkOldSets(newSet, oldSets, observed.limits);
    this.#mustLeaveEnough(observed, shrunk);
    this.#resize(observed, shrunk);
  }

  /** Tidies the list and marks its machines; false when the pass ends there. */
  #takeHandoff(): boolean {
    const owned = this.#seenMachines.list();
    const byName = new Map(owned.map((m) => [m.metadata.name, m]));
    const { choices, annotations } = readHandoff(this.#seenDeployment, byName, this.#clock.now());
    if (Object.keys(annotations).length > 0) {
      const isOld = this.#seenDeployment.metadata.resourceVersion !== this.#deployment.metadata.resourceVersion;
      if (isOld || !this.#mayWrite()) return false;
      this.#changeSpec((d) => {
        d.metadata.annotations = dropNulls({ ...d.metadata.annotations, ...annotations });
      });
      this.#seenDeployment = structuredClone(this.#deployment);
    }
    for (const { metadata } of strayMarks(owned, choices, this.#sets.list())) {
      const m = this.#machines.get(metadata.name);
      if (m?.metadata.resourceVersion !== metadata.resourceVersion || !this.#mayWrite()) return false;
      this.#changeMachine(m, ({ metadata: { annotations: marks } }) => {
        marks['machinepriority.machine.sapcloud.io'] = '3';
        delete marks[MARKED_FOR_DELETION_TIME_ANNOTATION];
      });
      this.#seeMachine(metadata.name);
    }
    for (const choice of choices) {
      const set = this.#sets
        .list()
        .find(({ metadata }) => metadata.uid === choice.machine.metadata.ownerReferences?.[0]?.uid);
      const marks = missingScalerMarks(choice, set);
      if (Object.keys(marks).length === 0) continue;
      if (!this.#mayWrite()) return false;
      const { name } = choice.machine.metadata;
      this.#changeMachine(this.#machines.get(name), (m) => Object.assign(m.metadata.annotations, marks));
      this.#seeMachine(name);
    }
    return true;
  }

  /** Tells the new set what it must know without a rollout; false when the process dies there. */
  #bringNewSetInStep(): boolean {
    const observed = observeDeployment(this.#deps, this.#seenDeployment);
    const { newSet, oldSets } = observed;
    if (newSet === undefined) return true;
    const change = newSetChange(observed.deployment, newSet, oldSets, isScalingEvent(this.#factsFor(observed)));
    if (change === undefined) return true;
    if (!this.#mayWrite()) return false;
    const changed = structuredClone(newSet) as BuiltMachineSet;
    const { annotations } = change['metadata'] as { annotations?: Record<string, string> };
    Object.assign(changed.metadata.annotations, annotations);
    this.#touch(changed);
    this.#sets.put(changed);
    return true;
  }

  #factsFor({ facts, limits, deployment }: Observed): ScalingFacts {
    const isPaused = deployment.spec.paused === true;
    return { ...facts, limits, strategy: 'RollingUpdate', isPaused, isFrozen: this.#isFrozen };
  }

  #createSet(observed: Observed, replicas: number): void {
    if (!this.#mayWrite()) return;
    const { metadata, spec } = newSetFor(observed.deployment, observed.oldSets, replicas);
    const set = machineSet((s) => {
      Object.assign(s.metadata, metadata, { uid: metadata.name, creationTimestamp: toTimestamp(this.#clock.now()) });
      s.spec = spec as BuiltMachineSet['spec'];
    });
    this.#sets.put(set);
  }

  #resize(observed: Observed, sizes: Resizes, noted: readonly string[] = []): boolean {
    let hasWritten = false;
    for (const set of [...(observed.newSet === undefined ? [] : [observed.newSet]), ...observed.oldSets]) {
      const { name } = set.metadata;
      if (!sizes.has(name) && !noted.includes(name)) continue;
      const chosen = observed.untold(set);
      const time =
        set === observed.newSet || chosen.length > 0 ? scalerTimeFor(observed.deployment, set, chosen) : undefined;
      const changed = structuredClone(set) as BuiltMachineSet;
      changed.spec.replicas = sizes.get(name) ?? set.spec.replicas ?? 0;
      Object.assign(
        changed.metadata.annotations,
        sizeNotes(observed.deployment),
        time === undefined ? {} : { [LAST_SCALER_CHANGE_ANNOTATION]: time },
      );
      if (isDeepEqual(changed, set)) continue;
      if (!this.#mayWrite()) return true;
      const living = observed.machinesOf(set).filter((m) => !isTerminating(m)).length;
      const most = Math.max(set.spec.replicas ?? 0, living);
      must(!this.#isFrozen || changed.spec.replicas <= most, `${name} is raised while frozen beyond what it has`);
      this.#touch(changed);
      this.#sets.put(changed);
      hasWritten = true;
    }
    return hasWritten;
  }

  #setPasses(): void {
    for (const set of this.#sets.list()) this.#setPass(set);
  }

  #setPass(set: MachineSet): void {
    const { victims } = this.#plan(set);
    for (const { machine: victim, reason } of victims) {
      if (!this.#mayWrite()) return;
      const { name, resourceVersion } = victim.metadata;
      const m = this.#machines.get(name);
      if (m === undefined || m.metadata.resourceVersion !== resourceVersion) continue; // NotFound, Conflict
      must(!this.#deleted.has(name), `${name} is deleted once`);
      must(reason !== 'marked' || !this.#spared.has(name), `${name} is named, or was when its set was told`);
      must(reason !== 'surplus' || this.#livingOf(set) > (set.spec.replicas ?? 0), `${name} is surplus`);
      must(reason !== 'failed' || m.status.currentStatus.phase === 'Failed', `${name} has failed`);
      this.#deleted.add(name);
      this.#changeMachine(m, (gone) => (gone.metadata.deletionTimestamp = toTimestamp(this.#clock.now())));
      this.#seeMachine(name);
    }
    while (this.#plan(set).create > 0 && this.#mayWrite()) this.#create(set);
  }

  #livingOf(set: MachineSet): number {
    const isOwn = (m: BuiltMachine): boolean => m.metadata.ownerReferences?.[0]?.uid === set.metadata.uid;
    return [...this.#machines.values()].filter((m) => isOwn(m) && !isTerminating(m)).length;
  }

  #plan(set: MachineSet): ReplicaPlan {
    return planReplicas({
      desired: set.spec.replicas ?? 0,
      machines: this.#seenMachines.byIndex(CONTROLLER_INDEX, set.metadata.uid),
      isFrozen: this.#isFrozen,
      isReplaced: false,
      isScaleUpDisabled: false,
      room: roomFor(this.#deps, set),
      isCrowded: isCrowded(this.#deps, set),
      isSwinging: this.#isSwinging,
      scalerChangedAtMs: fromTimestamp(set.metadata.annotations?.[LAST_SCALER_CHANGE_ANNOTATION]),
      nowMs: this.#clock.now(),
      isKept: (m) => isPreserved(m, this.#clock.now()),
    });
  }

  #create(set: MachineSet): void {
    const all = [...this.#machines.values()];
    const { limits } = observeDeployment(this.#deps, this.#seenDeployment);
    const allowed = limits.replicas + limits.surge;
    must(all.filter((m) => !isTerminating(m)).length < allowed, `a creation beyond ${allowed}`);
    const isRollout = all.some(({ metadata }) => metadata.ownerReferences?.[0]?.uid !== set.metadata.uid);
    const own = this.#seenMachines.byIndex(CONTROLLER_INDEX, set.metadata.uid);
    must(
      !isRollout || all.length < allowed || replacedAmong(set.spec.replicas ?? 0, own) > 0,
      `a creation in a rollout beyond ${allowed}, with those that are going, that replaces none`,
    );

    const m = machine((created) => {
      created.metadata.name = `m-${this.#next++}`;
      created.metadata.uid = created.metadata.name;
      created.metadata.creationTimestamp = toTimestamp(this.#clock.now());
      created.metadata.labels = { ...set.spec.template?.metadata?.labels };
      created.metadata.ownerReferences = [
        {
          apiVersion: 'machine.sapcloud.io/v1alpha1',
          kind: 'MachineSet',
          name: set.metadata.name,
          uid: set.metadata.uid,
          controller: true,
        },
      ];
      created.spec = { ...set.spec.template?.spec, providerID: `sim:///${created.metadata.name}` };
      created.status.currentStatus.phase = 'Pending';
    });
    this.#machines.set(m.metadata.name, m);
    this.#seeMachine(m.metadata.name);
  }

  /** What the sets will give up at these sizes leaves enough that are available, or none of it is available. */
  #mustLeaveEnough(observed: Observed, sizes: Resizes): void {
    const sets = observed.newSet === undefined ? observed.oldSets : [observed.newSet, ...observed.oldSets];
    const plans = sets.map((set) => {
      const size = sizes.get(set.metadata.name) ?? set.spec.replicas ?? 0;
      const { victims } = this.#plan({ ...set, spec: { ...set.spec, replicas: size } });
      const before = new Set(this.#plan(set).victims.map(({ machine: v }) => v.metadata.name));
      const lost = new Set(victims.map(({ machine: v }) => v.metadata.name));
      const stays = observed.machinesOf(set).filter((m) => isAvailable(m) && !lost.has(m.metadata.name));
      const gives = victims.filter(
        ({ machine: v, reason }) => reason !== 'marked' && isAvailable(v) && !before.has(v.metadata.name),
      );
      return { stays: stays.length, gives: gives.length };
    });
    const stays = plans.reduce((sum, plan) => sum + plan.stays, 0);
    const gives = plans.reduce((sum, plan) => sum + plan.gives, 0);
    const preserved = observed.oldSets.flatMap(observed.machinesOf).filter(isPreservedFailed).length;
    const least = leastAvailable(observed.limits, preserved);
    must(gives === 0 || stays >= least, `${stays} stay available of at least ${least}`);
  }
}

function isDeepEqual(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function dropNulls(values: Record<string, string | null>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).flatMap(([key, value]) => (value === null ? [] : [[key, value]])));
}

function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`violated: ${what}`);
}
