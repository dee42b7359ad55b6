import type { Mutation } from '../mutation.ts';

/** What a cluster-autoscaler changes. */
export const AUTOSCALER: readonly Mutation[] = [
  {
    in: 'withLess',
    from: 'machines.length > 0 && left < group.min',
    to: 'left < 0',
    why: 'A group falls below its minimum.',
  },
  {
    in: 'withLess',
    from: ': [...machines, ...failedFor(state, fewer)]',
    to: '',
    why: 'A Machine that works goes for a failed one whose replacement was taken back.',
  },
  {
    in: 'decideDecrease',
    from: 'neededBy(state)',
    to: '0',
    why: 'A request that is taken back takes Machines along that have come.',
  },
  {
    in: 'decideDeletion',
    from: 'decision.replicas < neededBy(state, machines)',
    to: 'decision.replicas < 0',
    why: 'By an old list the autoscaler takes back what a rollout makes, and a working Machine goes for the size.',
  },
  {
    in: 'deletionTargetOf',
    from: ' || named.annotations?.[FAKE_NODE_ANNOTATION] !== undefined',
    to: '',
    why: 'An autoscaler that watches another cluster deletes all machines, as it sees none of their Nodes.',
  },
  {
    in: 'Membership.machineOf',
    from: 'nodes.get(name) !== undefined',
    to: 'false',
    why: 'An autoscaler of another cluster deletes a healthy Machine whose Node has the name of a Node there, as servers that are counted do.',
  },
  {
    in: 'owedBy',
    from: ': toCome)',
    to: ': limits.unavailable)',
    why: 'What the autoscaler cannot get from a group that waits for its rollout is neither given up nor sought elsewhere.',
  },
  {
    in: 'decideIncrease',
    from: '> group.max)',
    to: '> group.max + 1)',
    why: 'A group grows beyond its maximum.',
  },
  {
    in: 'GroupWrites.#send',
    from: 'mergePatchIfUnchanged(base',
    to: 'mergePatchIfUnchanged({ metadata: { ...base.metadata, resourceVersion: "" } }',
    why: 'What somebody else has changed in between is overwritten.',
  },
  {
    in: 'GroupWrites.#decide',
    from: 'unread = decision.machines.filter((name) => !live.has(name));',
    to: 'unread: string[] = [];',
    why: 'A Machine that is on its way out costs another replica while the cache does not show it.',
  },
  {
    in: 'GroupWrites.#carryOut',
    from: 'unanswered = next',
    to: 'continue',
    why: 'An increase whose answer was lost happens twice.',
  },
  {
    in: 'hasJoined',
    from: "phaseOf(machine) === 'Running' || phaseOf(machine) === 'Available'",
    to: 'false',
    why: 'A Machine that runs is taken for one that has not come while the cache of Nodes is behind.',
  },
  {
    in: 'refusalOf',
    from: "=== 'choosing",
    to: "!== 'none",
    why: 'While one old machine cannot be deleted, Nodes are drained by the autoscaler in vain.',
  },
];
