import type { ScriptLimits } from '../world/script.ts';

/** A seed that once showed something that must not be. */
export interface CorpusSeed extends ScriptLimits {
  readonly seed: number;
  /** What it showed, and why. */
  readonly showed: string;
}

/**
 * Seeds that are run again, some of them with each change. What a seed stands for changes with the world: one that no longer reaches what it showed may go
 * when a unit test shows that, too.
 */
export const CORPUS: readonly CorpusSeed[] = [
  {
    seed: 25,
    showed:
      'a Machine that was being created when leadership was suspended waited forever, because what met the closed fence was not tried again',
  },
  {
    seed: 7107,
    world: 'ironcore',
    showed:
      'an operator gave up the lost machine of a Machine for an hour, and within that hour the state of its runtime was lost again: a third machine was made',
  },
  {
    seed: 5014,
    world: 'ironcore',
    showed:
      'a machine was lost before the first list of its runtime that could have shown it: no list has missed it, and its Machine waited forever',
  },
  {
    seed: 930118,
    world: 'ironcore',
    showed:
      'the control cluster was set back to before a Machine was placed: it was placed in another pool, and got a second machine there beside the one where it was',
  },
  {
    seed: 950122,
    world: 'ironcore',
    showed:
      'the control cluster was set back to before the ephemeral Volume of a running machine was made: its disk was detached, and the empty one of the new Volume attached',
  },
  {
    seed: 950137,
    world: 'ironcore',
    showed:
      'the control cluster was set back to before a Volume was claimed: while the pool of the machine that had it was held, it was attached to a machine in another pool',
  },
  {
    seed: 10,
    world: 'ironcore',
    showed:
      'a power failure took a process right after it had told a machine to go, and the state of the runtime: the Machine went, and its machine came back with that state',
  },
  {
    seed: 8,
    world: 'cells',
    phases: 2,
    showed:
      'a namespace that lost its label was taken for one whose deletion was undone: the control cluster counted as restored, and all cells stood still',
  },
  {
    seed: 324,
    world: 'cells',
    phases: 2,
    showed:
      'a kubeconfig named the target cluster of another namespace by mistake: all machines were replaced one after the other, since their Nodes were missing there',
  },
  {
    seed: 7021,
    world: 'machines',
    phases: 1,
    showed:
      'a control cluster that was set back was never found to be: it was asked for a version that it would reach much later, and all answers were awaited',
  },
  {
    seed: 8433,
    world: 'machines',
    phases: 1,
    showed:
      'a template of which no machine could be made was replaced by another one: machines that had not been ready for seconds went in place of those that were missing',
  },
  {
    seed: 771006,
    world: 'machines',
    phases: 2,
    showed:
      'limits were lowered in a rollout: a new set had no room for what it lacked, waited for that with what had failed, and so did the rollout, forever',
  },
  {
    seed: 883003,
    world: 'machines',
    showed:
      'a process died when it had recorded a VM, and not yet that the VM is to be initialized: its machine, whose creation had failed before, ran with it as soon as the Node was healthy',
  },
  {
    seed: 72760736,
    world: 'machines',
    showed:
      'a new template had no set yet, as nobody was allowed to create one, when its pool was scaled down and frozen for that: the pool waited for the set, the set for the end of the freeze, and that for fewer machines, forever',
  },
  {
    seed: 760036,
    world: 'machines',
    showed:
      'two machines whose updates in place had failed were never replaced: each counted as an update under way, for which the other had to wait',
  },
  {
    seed: 963008,
    world: 'ironcore',
    showed:
      'what was missing in a pool was given up for all of its Machines: one whose machine was there, in the pool that it had before a restore, got a second machine',
  },
  {
    seed: 961312,
    world: 'ironcore',
    showed:
      'a pool that was chosen before an outage was written after it, although nobody had been sent anything and the pool evicted Machines by then: the Machine was gone a second after it was placed',
  },
  {
    seed: 973102,
    world: 'ironcore',
    showed:
      'a power failure took a process right after it had asked for a machine, and the state of the runtime, which lacked its only other machine, too: the Machine was deleted, and went before its machine',
  },
  {
    seed: 239975556,
    world: 'machines',
    showed:
      'nobody was allowed to read Machines while a restore was read again, and its outage ended without them: the VM of a Machine that the backup did not have was deleted, as nobody knew then that it was only forgotten',
  },
];
