import type { Mutation } from '../mutation.ts';

/** What cluster-autoscalers are told, and who may call. */
export const AUTOSCALER_ANSWERS: readonly Mutation[] = [
  {
    in: 'authenticationErrorOf',
    from: '== undefined) {',
    to: '== null) {',
    why: 'Whoever reaches the port may delete machines.',
  },
  {
    in: 'authenticationErrorOf',
    from: 'some((name) => clientNames.includes(name))',
    to: 'length > 0',
    why: 'Every certificate of the authority may delete machines.',
  },
  {
    in: 'whyUnavailable',
    from: '!works || trustedForMs <',
    to: '(!works || trustedForMs <= 0) && outages.length ==',
    why: 'A replica that stands by in an outage keeps its clients.',
  },
  {
    in: 'MachineControllers.check',
    from: 'clock.monotonicMs() < this.#seen.heldUntilMs',
    to: "this.#seen.lease?.spec?.holderIdentity !== ''",
    why: 'While the machine controllers are dead the autoscaler collects deletions that all happen at once when they are back.',
  },
  {
    in: 'instancesOf',
    from: 'min(Math.max(0, replicas - staying), MOST_PLACES',
    to: 'max(0, Math.min(replicas - staying, 2 * MOST_PLACES)',
    why: 'A size with a digit too many ends the manager for want of memory.',
  },
  {
    in: 'optionsReply',
    from: 'undefined) return undefined;',
    to: 'undefined) continue;',
    why: 'A duration that nobody said becomes 0, and new Nodes are deleted at once.',
  },
  {
    in: 'templateNode',
    from: 'machineClass?.nodeTemplate ?? announced',
    to: 'announced?.nodeTemplate ?? machineClass',
    why: 'What a class says of its Nodes does not count where the provider of its template says something else.',
  },
];
