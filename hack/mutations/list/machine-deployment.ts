import type { Mutation } from '../mutation.ts';

/** MachineDeployments. */
export const MACHINE_DEPLOYMENT: readonly Mutation[] = [
  {
    in: 'setsToForget',
    from: 'return [];',
    to: 'return setsToForget({ oldSets, machinesOf }, 0);',
    why: 'Without a history limit all history goes.',
  },
  {
    in: 'resizeSets',
    from: 'mergePatchIfUnchanged',
    to: '((base: typeof set, change: object) => ({ ...mergePatchIfUnchanged(base, {}), body: change }))',
    why: 'A size is written over one that somebody has just asked for.',
  },
  {
    in: 'createNewSet',
    from: '(equalTemplate(live.spec.template, deployment.spec.template)) { const',
    to: '(live !== undefined) { const',
    why: 'A set of another template counts as the new one.',
  },
  {
    in: 'inPlaceUpdate',
    from: 'if (!(await deps.marker.write(deployment, next, selectNode, signal)).isDone) return AGAIN',
    to: 'await deps.marker.write(deployment, next, selectNode, signal)',
    why: 'One Node that refuses to be chosen holds up the update of all others.',
  },
  {
    in: 'newSetFor',
    from: 'MACHINE_FINALIZER',
    to: '',
    why: 'A set can vanish before its controller has seen it.',
  },
  {
    in: 'findNewSet',
    from: '.find',
    to: '.toReversed().find',
    why: 'Of two sets with the present template each takes a turn.',
  },
  {
    in: 'missingNodeMarks',
    from: "true';",
    to: "true' && isHeldByUs(node);",
    why: 'The end of a rollout lets the autoscaler take a Node that somebody keeps.',
  },
  {
    in: 'isHeldAsItJoins',
    from: 'Pending',
    to: '',
    why: 'A Node that joins a rollout is written twice.',
  },
  {
    in: 'NodeMarker.#write',
    from: '1) node',
    to: '5) node',
    why: 'A Node that has changed since it was cached is written as it was, again and again, and counts as one that refuses.',
  },
  {
    in: 'NodeMarker.#missing',
    from: '(one)',
    to: '(node)',
    why: 'What somebody else has put on the Node meanwhile is overwritten.',
  },
  {
    in: 'rollbackTarget',
    from: 'latestFirst[1',
    to: 'latestFirst[0',
    why: 'A rollback without revision changes nothing.',
  },
  {
    in: 'shrinkOldSets',
    from: '(old,',
    to: '(all,',
    why: 'A template whose machines fail and are preserved takes all machines that work.',
  },
  {
    in: 'shrinkOldSets',
    from: 'clamp(Math.min(most - (size - left), left), budget',
    to: 'Math.min(most - (size - left), left',
    why: 'Unavailable machines of old sets go beyond what the rollout allows.',
  },
  {
    in: 'shrinkInProportion',
    from: 'set.size - set.living',
    to: 'set.size - set.size',
    why: 'For replicas of a rollout that cannot be created, Machines that work go.',
  },
  {
    in: 'shrinkOldest',
    from: 'size - living',
    to: 'size - size',
    why: 'For replicas of an update in place that cannot be created, Machines that work go.',
  },
  {
    in: 'rollingUpdate',
    from: 'if ((await markNodesOfRollout(deps, pass, { taint: true })).hasMore) return AGAIN',
    to: 'await markNodesOfRollout(deps, pass, { taint: true })',
    why: 'Old machines go before the autoscaler knows of the rollout.',
  },
  {
    in: 'readHandoff',
    from: 'flatMap(([first]) => first ?? []',
    to: 'flat(',
    why: 'A machine that the autoscaler names twice costs another one that nobody named.',
  },
  {
    in: 'unacknowledged',
    from: '?.uid !== set.metadata.uid',
    to: ' === undefined',
    why: 'A set is told of the machines of another one.',
  },
  {
    in: 'rolloutLimitsOf',
    from: 'down',
    to: 'up',
    why: 'One machine more than allowed is unavailable in a rollout.',
  },
  {
    in: 'inPlaceUpdate',
    from: 'if (await resizeSets(deps, observed, { sizes: settled }, signal)) return stop',
    to: 'await resizeSets(deps, observed, { sizes: settled }, signal)',
    why: 'A set is resized twice by sizes of a moment before.',
  },
  {
    in: 'withoutRaises',
    from: 'new Map([...sizes].filter(([name, size]) => size <= (before.get(name) ?? 0)))',
    to: 'sizes',
    why: 'A frozen set grows in an update in place.',
  },
  {
    in: 'NodeMarker.#writeAll',
    from: 'due.length === behind.length && due.length <= NODES_A_PASS && count',
    to: 'count',
    why: 'A set counts as tainted while Nodes of it are left alone.',
  },
  {
    in: 'couldNotMarkNodes',
    from: 'MAX_ANSWERS)',
    to: '1)',
    why: 'Of Nodes that refused for several reasons one reason is told.',
  },
  {
    in: 'COPIES',
    from: "DELETION_POLICY_ANNOTATION]: 'none',",
    to: "DELETION_POLICY_ANNOTATION]: 'rollbacks',",
    why: 'A rollback brings back that machines are deleted without a drain.',
  },
];
