import type { Mutation } from '../mutation.ts';

const DELETION = ['pkg/autoscaler/mutations/delete-nodes.test.ts'];
const WRITE = ['pkg/autoscaler/mutations/write.test.ts'];
const HISTORIES = ['pkg/autoscaler/mutations/histories.test.ts'];

/** What a cluster-autoscaler changes. */
export const AUTOSCALER: readonly Mutation[] = [
  {
    file: 'pkg/autoscaler/mutations/delete-nodes.ts',
    from: 'if (asked.isPlaceholder && hasNode) {',
    to: 'if (false) {',
    why: 'A healthy Machine whose Node has joined late is deleted for a placeholder.',
    tests: DELETION,
  },
  {
    file: 'pkg/autoscaler/mutations/delete-nodes.ts',
    from: '|| namesListed(deployment).has(name)) return false;',
    to: ') return false;',
    why: 'A Machine that is named again costs another replica.',
    tests: HISTORIES,
  },
  {
    file: 'pkg/autoscaler/mutations/delete-nodes.ts',
    from: 'return !isKept(machine, nowMs) && !isReplaced(machine, nowMs);',
    to: 'return true;',
    why: 'What a person looks at goes.',
    tests: DELETION,
  },
  {
    file: 'pkg/autoscaler/mutations/delete-nodes.ts',
    from: 'if (machines.length > 0 && left < group.min)',
    to: 'if (left < 0)',
    why: 'A group falls below its minimum.',
    tests: DELETION,
  },
  {
    file: 'pkg/autoscaler/mutations/delete-nodes.ts',
    from: 'Math.max(0, Math.min(missing, left - group.min))',
    to: 'Math.min(missing, left - group.min)',
    why: 'A deletion makes a group that is below its minimum larger.',
    tests: DELETION,
  },
  {
    file: 'pkg/autoscaler/mutations/delete-nodes.ts',
    from: 'machines: [...machines, ...failedFor(state, fewer)]',
    to: 'machines',
    why: 'A Machine that works goes for a failed one whose replacement was taken back.',
    tests: DELETION,
  },
  {
    file: 'pkg/autoscaler/mutations/decrease.ts',
    from: 'filling.filter(({ hasNode }) => hasNode).length',
    to: '0',
    why: 'A request that is taken back takes Machines along that have come.',
    tests: ['pkg/autoscaler/mutations/decrease.test.ts'],
  },
  {
    file: 'pkg/autoscaler/mutations/increase.ts',
    from: 'return replicas > group.max ?',
    to: 'return replicas > group.max + 1 ?',
    why: 'A group grows beyond its maximum.',
    tests: ['pkg/autoscaler/mutations/increase.test.ts'],
  },
  {
    file: 'pkg/autoscaler/mutations/write.ts',
    from: 'const patch = mergePatchIfUnchanged(base, {',
    to: 'const patch = mergePatchIfUnchanged({ metadata: { ...base.metadata, resourceVersion: "" } }, {',
    why: 'What somebody else has changed in between is overwritten.',
    tests: WRITE,
  },
  {
    file: 'pkg/autoscaler/mutations/write.ts',
    from: "const intent = replicas > replicasOf(base) ? 'change' : 'destroy';",
    to: "const intent = 'change';",
    why: 'Machines are given up without proof that the clusters are alive.',
    tests: WRITE,
  },
  {
    file: 'pkg/autoscaler/mutations/write.ts',
    from: 'const unread = decision.machines.filter((name) => !live.has(name));',
    to: 'const unread: string[] = [];',
    why: 'A Machine that is on its way out costs another replica while the cache does not show it.',
    tests: WRITE,
  },
  {
    file: 'pkg/autoscaler/mutations/write.ts',
    from: 'unanswered = next;',
    to: 'continue;',
    why: 'An increase whose answer was lost happens twice.',
    tests: HISTORIES,
  },
  {
    file: 'pkg/autoscaler/mutations/write.ts',
    from: "if (unanswered !== undefined && fate !== 'open') this.#deps.machineDeployments.wrote(now);",
    to: '',
    why: 'The size is told as it was before, and the autoscaler asks for the same again.',
    tests: WRITE,
  },
  {
    file: 'pkg/autoscaler/mutations/write.ts',
    from: 'return perhaps ?? next.mutated;',
    to: 'return next.mutated;',
    why: 'A deletion whose answer was lost is told of by no Event.',
    tests: WRITE,
  },
  {
    file: 'pkg/autoscaler/mutations/fate.ts',
    from: "if (changes === 0) return 'missed';",
    to: '',
    why: 'A write that a status overtook is given up.',
    tests: ['pkg/autoscaler/mutations/fate.test.ts'],
  },
  {
    file: 'pkg/autoscaler/mutations/observe.ts',
    from: "phaseOf(machine) === 'Running' || phaseOf(machine) === 'Available'",
    to: 'false',
    why: 'A Machine that runs is taken for one that has not come while the cache of Nodes is behind.',
    tests: WRITE,
  },
  {
    file: 'pkg/autoscaler/mutations/delete-nodes.ts',
    from: 'return isRolling && [...members.values()]',
    to: 'return false && [...members.values()]',
    why: 'A rollout of type Recreate whose drains take long ends with as few machines as the group may have.',
    tests: DELETION,
  },
  {
    file: 'pkg/autoscaler/mutations/group-state.ts',
    from: 'return isPreserved(machine, nowMs) || isPreservedFailed(machine);',
    to: 'return isPreserved(machine, nowMs);',
    why: 'A failed Machine that was preserved is named, taken off the list, and another one goes for the size.',
    tests: DELETION,
  },
  {
    file: 'pkg/autoscaler/membership.ts',
    from: 'ofVM.length === 1 && machines.',
    to: 'machines.',
    why: 'Of two Nodes with one provider id any is deleted.',
    tests: ['pkg/autoscaler/mutations/asked.test.ts'],
  },
  {
    file: 'pkg/autoscaler/membership.ts',
    from: 'if (ofVM.length > 1) return ofVM.find(({ metadata }) => metadata.labels?.[NODE_LABEL] === name);',
    to: '',
    why: 'Of two Machines with one provider id any is deleted.',
    tests: ['pkg/autoscaler/mutations/asked.test.ts'],
  },
];
