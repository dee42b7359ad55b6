import type { Mutation } from '../mutation.ts';

/** IronCore. */
export const IRONCORE: readonly Mutation[] = [
  {
    in: 'place',
    from: 'found > best',
    to: 'found < best',
    why: 'Machines go to the fullest pool.',
  },
  {
    in: 'PlacesTaken.decided',
    from: '?.decidedFor === metadata.resourceVersion',
    to: ' !== undefined',
    why: 'A machine is bound for ever to a pool that it did not get.',
  },
  {
    in: 'Scheduler.reconcile',
    from: 'this.#taken.decided(machine)',
    to: 'undefined as string | undefined',
    why: 'A machine whose binding has no answer has its place given to another.',
  },
  {
    in: 'Eviction.reconcile',
    from: '(live?',
    to: '(pools.get(name)?',
    why: 'A machine is deleted for a taint that was taken back.',
  },
  {
    in: 'poolStatus',
    from: 'state: probe.state }',
    to: 'state: probe.state, capacity: {} }',
    why: 'A runtime that is away for a moment makes a pool as if it had no machines.',
  },
  {
    in: 'Rivals.#foreign',
    from: '!isRecordedClaim(known, claim) &&',
    to: '!isRecordedClaim(known, claim) && false &&',
    why: 'Two clusters with the same UIDs delete the machines of each other.',
  },
  {
    in: 'decideMachine',
    from: 'uncertainMs > 0',
    to: 'uncertainMs < 0',
    why: 'A creation without an answer is repeated at once: two machines.',
  },
  {
    in: 'wantedOf',
    from: 'want.ready : want.held',
    to: 'want.ready : undefined',
    why: 'Two Machines that change their volumes with each other wait for ever.',
  },
  {
    in: 'MissingMachines.wrongRuntime',
    from: "'' || right === answering",
    to: "answering || answering !== ''",
    why: 'Two addresses of pools are mixed up: every machine is made twice, and deletions leave theirs behind.',
  },
  {
    in: 'Relist.#wakeMissing',
    from: '!known.shapes.has(runtimeIDOf(machine))',
    to: 'machine.metadata.uid === ""',
    why: 'A machine that has come and gone between two lists is never missed.',
  },
  {
    in: 'MissingMachines.#doubt',
    from: 'isTooMany({ recorded, missing })',
    to: 'false',
    why: 'A runtime that lost its state has every deletion ended.',
  },
  {
    in: 'recordedPoolUIDs',
    from: 'metadata.uid ? uids : []',
    to: 'undefined ? [] : uids',
    why: 'Machines of another cluster at the same runtime are taken for those of a former pool, and deleted for a permission.',
  },
  {
    in: 'LeftClaims.release',
    from: 'this.#isGone(pool, one, connection)',
    to: 'connection !== -1',
    why: 'A volume is given to another machine while one uses it that a runtime without its state does not show.',
  },
  {
    in: 'IronCorePoolController.#heartbeat',
    from: 'this.#stop(name);',
    to: '',
    why: 'A pool that somebody else has taken over is served on while its Lease may not be read.',
  },
  {
    in: 'sameAttributes',
    from: 'others,',
    to: 'wanted,',
    why: 'Disks and network interfaces of running machines are detached when the pool passes on from a machinepoollet that sent other labels.',
  },
  {
    in: 'claims',
    from: '= mayRelease ?',
    to: '= own.length > 0 ?',
    why: 'A volume is given to another Machine while it is still attached.',
  },
  {
    in: 'judgeOwnerless',
    from: '> MOST_OWNERLESS',
    to: '< 0',
    why: 'All machines of a pool go when something takes the finalizers of their Machines.',
  },
  {
    in: 'isMachineOf',
    from: "['', own].includes(labels[key] ?? '')",
    to: 'key !== own',
    why: 'A machine of another Machine is taken for its own, and deleted with it.',
  },
  {
    in: 'LeftClaims.#leftOf',
    from: 'handle === undefined || !handles.has(handle)',
    to: 'true',
    why: 'A volume that a machine without labels has attached is given to another Machine.',
  },
];
