import { expect, test } from '@jest/globals';
import fc from 'fast-check';

import { type BuiltMachine, node } from '../../test/builders.ts';
import { groupState, type MemberFacts, nodeGroup } from '../../test/node-group.ts';
import { chosenIn } from '../controllers/machine-deployment/scaling/scaler-handoff.ts';
import type { RolloutStage } from '../controllers/machine-deployment/rollout/rollout-stage.ts';
import { type Instance, instancesOf } from './instances.ts';
import { type GroupChange, type GroupDecision, isRefusal } from './mutations/decision.ts';
import { decideDeletion, type DeletionTarget } from './mutations/delete-nodes.ts';
import { type GroupState, hasJoined, hasLostNode } from './mutations/group-state.ts';
import { decideDecrease } from './mutations/resize.ts';
import { parsePlaceholder } from './placeholder.ts';

const NOW = '2026-01-01T00:00:00Z';
const LATER = '2026-01-02T00:00:00Z';
const BEFORE = '2025-12-01T00:00:00Z';
const RUNS = 1_000;

/** What may be the matter with a Machine, and whether a Node of it may be seen then. */
const KINDS: readonly { readonly change: (m: BuiltMachine) => void; readonly mayHaveNode: boolean }[] = [
  { change: () => undefined, mayHaveNode: true },
  { change: ({ status }) => void (status.currentStatus.phase = 'Pending'), mayHaveNode: true },
  {
    change: ({ status }) => {
      status.currentStatus.phase = 'CrashLoopBackOff';
      status.lastOperation = { type: 'Create', state: 'Failed', errorCode: 'ResourceExhausted', description: 'full' };
    },
    mayHaveNode: false,
  },
  { change: ({ status }) => void (status.currentStatus.phase = 'Unknown'), mayHaveNode: false },
  { change: ({ status }) => void (status.currentStatus.phase = 'Failed'), mayHaveNode: true },
  {
    change: ({ status }) => void (status.currentStatus = { phase: 'Failed', preserveExpiryTime: LATER }),
    mayHaveNode: true,
  },
  {
    change: ({ status }) => void (status.currentStatus = { phase: 'Failed', preserveExpiryTime: BEFORE }),
    mayHaveNode: true,
  },
  {
    change: ({ status }) => void (status.currentStatus = { phase: 'Pending', preserveExpiryTime: LATER }),
    mayHaveNode: false,
  },
  { change: ({ metadata }) => void (metadata.deletionTimestamp = NOW), mayHaveNode: true },
];

interface Drawn {
  readonly kind: number;
  readonly isSeen: boolean;
  readonly isListed: boolean;
  readonly second: number;
}

const someGroup = fc.record({
  replicas: fc.nat(8),
  min: fc.nat(3),
  owed: fc.nat(2),
  rollout: fc.constantFrom<RolloutStage>('none', 'choosing', 'emptying'),
  members: fc.array(
    fc.record<Drawn>({
      kind: fc.nat(KINDS.length - 1),
      isSeen: fc.boolean(),
      isListed: fc.constantFrom(false, false, false, true),
      second: fc.nat(20),
    }),
    { maxLength: 7 },
  ),
});

/** A group as the autoscaler is told of it, and as it is decided about. */
class Group {
  readonly limits;
  readonly state: GroupState;
  readonly told: readonly Instance[];
  readonly #ids: readonly string[];

  constructor({ replicas, min, owed, rollout, members }: typeof someGroup extends fc.Arbitrary<infer T> ? T : never) {
    this.limits = nodeGroup({ min, max: 20 });
    const list = members.flatMap(({ isListed }, i) => (isListed ? [`m-${i}~${NOW}`] : [])).join();
    const isSeen = members.map((drawn) => drawn.isSeen && KINDS[drawn.kind]?.mayHaveNode === true);
    const facts = members.map(({ kind, second }, i): MemberFacts => {
      const change = (m: BuiltMachine): void => {
        m.metadata.creationTimestamp = `2025-12-31T00:00:${String(second).padStart(2, '0')}Z`;
        KINDS[kind]?.change(m);
      };
      return { name: `m-${i}`, hasNode: true, change };
    });
    const owing = rollout === 'choosing' ? owed : 0;
    const options = { ...(list === '' ? {} : { list }), rollout, owed: owing };
    const machines = [...groupState(replicas, facts, options).members.values()].map(({ machine }, i) => ({
      machine,
      node: isSeen[i] === true ? node(({ spec }) => void (spec.providerID = `cloud:///m-${i}`)) : undefined,
    }));
    const now = machines.map(({ machine, node: its }, i) => ({
      ...facts[i]!,
      hasNode: its !== undefined || hasJoined(machine),
      isLost: its === undefined && hasLostNode(machine),
    }));
    this.state = groupState(replicas, now, options);
    const nowMs = Date.parse(NOW);
    const owned = machines.map(({ machine }) => machine);
    const chosen = chosenIn(this.state.deployment, owned, nowMs).map(({ machine }) => machine.metadata.name);
    this.#ids = machines.flatMap(({ node: its }) => its?.spec?.providerID ?? []);
    this.told = instancesOf({
      id: this.limits.id,
      replicas,
      min,
      owed: owing,
      machines,
      ambiguous: new Set(),
      chosen: new Set(chosen),
      places: (count) => Array.from({ length: count }, (_, i) => `x-${i}`),
      provisionMs: undefined,
      seenMs: () => 0,
      nowMs,
    });
  }

  get failing(): readonly Instance[] {
    return this.told.filter(({ error }) => error !== undefined);
  }

  /** Instances of which the autoscaler expects Nodes, and sees none. */
  get unregistered(): readonly Instance[] {
    return this.told.filter(
      ({ id, state, error }) => state !== 'deleting' && error === undefined && !this.#ids.includes(id),
    );
  }

  /** How many Nodes there are. */
  get registered(): number {
    return this.#ids.length;
  }

  delete(instances: readonly Instance[]): GroupDecision {
    return decideDeletion(this.state, this.limits, instances.map(targetOf));
  }

  /** Machines that work, and would be left by a change. */
  working({ machines }: GroupChange): number {
    return this.state.filling.filter(({ machine, hasNode }) => hasNode && !machines.includes(machine.metadata.name))
      .length;
  }
}

function targetOf({ id }: Instance): DeletionTarget {
  const placeholder = parsePlaceholder(id);
  if (placeholder?.kind === 'missing') return { node: id, kind: 'missing', place: placeholder.place };
  return { node: id, kind: 'machine', machine: placeholder?.machine ?? '', isUnregistered: true };
}

function check(holds: (group: Group, replicas: number) => void): void {
  fc.assert(
    fc.property(someGroup, (drawn) => {
      fc.pre(drawn.replicas >= drawn.min);
      holds(new Group(drawn), drawn.replicas);
    }),
    { numRuns: RUNS },
  );
}

test('what an autoscaler is told to have failed it may delete, for a replica each', () => {
  check((group, replicas) => {
    expect(group.delete(group.failing)).toMatchObject({ replicas: replicas - group.failing.length });
  });
});

test('Nodes, and instances that are to become some or have failed, account for the size: it is never set to what is there', () => {
  check((group, replicas) => {
    expect(group.registered + group.unregistered.length + group.failing.length).toBeGreaterThanOrEqual(replicas);
  });
});

test('whatever does not come, and is taken back, costs no Machine that works', () => {
  check((group, replicas) => {
    const { min } = group.limits;
    const decisions = [
      group.delete(group.unregistered.slice(0, replicas - min)),
      ...[-1, -2, -5].map((delta) => decideDecrease(group.state, group.limits, delta)),
    ];

    for (const change of decisions.flatMap((decision) => (isRefusal(decision) ? [] : decision))) {
      expect(change.replicas).toBeGreaterThanOrEqual(Math.min(replicas, group.working(change)));
      expect(group.working(change)).toBe(group.working({ ...change, machines: [] }));
    }
  });
});
