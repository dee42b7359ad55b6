import type { Mutation } from '../mutation.ts';

/** MachineSets, and what they share with MachineDeployments. */
export const MACHINE_SET: readonly Mutation[] = [
  {
    in: 'finishDeletion',
    from: '0) {',
    to: '1) {',
    why: 'A set is let go before its last Machine, which the garbage collector then deletes.',
  },
  {
    in: 'wasRefused',
    from: 'ApiError && err.code >= 400 && err.code < 500',
    to: 'ApiError',
    why: 'A connection that broke counts as "surely not created", and the Machine is made twice.',
  },
  {
    in: 'takeExisting',
    from: '!== undefined && controllerOf(live)?.uid !== set.metadata.uid',
    to: '=== null',
    why: 'The Machine of a stranger counts as ours.',
  },
  {
    in: 'hasRecovered',
    from: 'signal)',
    to: 'signal).catch(() => undefined)',
    why: 'A Failed machine is deleted although its Node could not be looked at.',
  },
  {
    in: 'templateChange',
    from: "&& phaseOf(machine) !== 'Failed'",
    to: '',
    why: 'A node template and timeouts are pushed to Failed machines.',
  },
  {
    in: 'autoPreservation',
    from: '.toSorted(byAge).slice(0, -room)',
    to: '',
    why: 'Lowering the number of preserved machines releases all.',
  },
  {
    in: 'planReplicas',
    from: 'facts.machines.filter((machine) => !isTerminating(machine))',
    to: '[...facts.machines]',
    why: 'A machine on its way out keeps its replacement from being created.',
  },
  {
    in: 'isMarkedForDeletion',
    from: "=== '1'",
    to: '!== undefined',
    why: 'A machine that the autoscaler has spared again is deleted.',
  },
  {
    in: 'victimsAmong',
    from: 'living.filter((machine) => !isJustUpdated(machine)); const',
    to: '[...living]; const',
    why: 'A machine that an update in place has just handed over is deleted.',
  },
  {
    in: 'BY_WISH',
    from: 'machine, nowMs, isKept) => (isKept(machine, nowMs) ? 1 : 0)',
    to: ') => 0',
    why: 'A preserved machine goes before others.',
    survives: 'Two later criteria give preserved machines a higher rank too.',
  },
  {
    in: 'Expectations.check',
    from: "{ kind: 'needsLiveCheck', names: overdue }",
    to: 'satisfied',
    why: 'After some minutes a POST that was not answered counts as never sent.',
  },
  {
    in: 'Expectations.check',
    from: 'if (isCached(name)) this.settled(owner, name',
    to: 'void isCached(name',
    why: 'A Machine that is there is made again.',
  },
  {
    in: 'deleteSurplus',
    from: 'notes.alsoAfter(RECOVERY_CHECK_MS',
    to: 'void (RECOVERY_CHECK_MS',
    why: 'A Failed machine that was spared is not looked at again soon.',
  },
  {
    in: 'ReplicaPlans.of',
    from: 'isLabelled || isStopped === true',
    to: 'false',
    why: 'A frozen set goes on creating.',
  },
  {
    in: 'compareRanks',
    from: 'return 0;',
    to: 'return -1;',
    why: 'Two passes choose different machines.',
  },
];
