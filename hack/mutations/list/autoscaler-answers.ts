import type { Mutation } from '../mutation.ts';

/** With real certificates, replicas and target clusters. */
const CELLS = 'test/integration/cells-autoscaler.test.ts';

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
    from: 'min(Math.max(0, replicas - staying.length), MOST_PLACES',
    to: 'max(0, Math.min(replicas - staying.length, 2 * MOST_PLACES)',
    why: 'A size with a digit too many ends the manager for want of memory.',
  },
  {
    in: 'reportedErrors',
    from: 'Math.max(min, needed)',
    to: 'Math.max(0, needed)',
    why: 'A Machine at the minimum that cannot be created stops the autoscaler for all groups.',
  },
  {
    in: 'lateError',
    from: '< patienceMs) return',
    to: '< provisionMs) return',
    why: 'The autoscaler never tries another group when Machines of the first never join.',
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
  {
    in: 'CellsAutoscalerService.#cellOf',
    from: 'others.length === 0 ? cell : undefined',
    to: 'cell',
    why: 'An autoscaler whose name two namespaces have deletes machines of the first of them.',
    above: { file: CELLS, only: 'none that two name' },
  },
  {
    in: 'CellsAutoscalerService.#elsewhere',
    from: 'if (cells.isOurs(cell)) {',
    to: "if (cell !== '') {",
    why: 'Autoscalers look for the replica that manages their namespace for one loop after the other.',
    above: { file: CELLS, only: 'of several replicas' },
  },
  {
    in: 'ServedGroups.unavailable',
    from: 'held: held()',
    to: 'held: []',
    why: "A namespace is scaled by the pods of a target cluster that is another one's.",
    above: { file: CELLS, only: 'target cluster is that of another one' },
  },
  {
    in: 'CellClients.#changed',
    from: 'current === undefined ? []',
    to: 'current === undefined ? old',
    why: 'Autoscalers scale a namespace that has lost its label.',
  },
  {
    in: 'cellsFrom',
    from: "namesIn(annotations[CELL_CLIENT_NAME] ?? '')",
    to: "namesIn(annotations[CELL_CLIENT_NAME] ?? 'cluster-autoscaler')",
    why: 'One autoscaler with the usual name scales every namespace that names none.',
  },
  {
    in: 'refuseForCells',
    from: 'if (tls === undefined)',
    to: "if (tls === undefined && listen.host === '')",
    why: 'Whoever reaches the port deletes machines of all namespaces.',
  },
];
