import type { OperationCode } from './operation-codes.ts';
import { phaseOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';

/**
 * Why a machine past its health timeout is not replaced yet.
 * target: none of the Nodes of the Machines is in the target cluster. zone: too many machines of its zone became unhealthy at once.
 * stopped: its MachineDeployment allows no replacement. limit: as many others are being replaced as it allows. pace: several are unhealthy, and enough of them were replaced within this health timeout.
 * grace: what we know of the clusters is too young.
 */
export const HOLD_KINDS = ['target', 'zone', 'stopped', 'pace', 'limit', 'grace'] as const;

/** One of them; the earlier ones matter more to who looks at many machines. */
export type ReplacementHoldKind = (typeof HOLD_KINDS)[number];

/** A hold, in words. They stay the same for as long as the hold does, so that they are written once. */
export interface Hold {
  readonly kind: ReplacementHoldKind;
  /** Kept in the last operation of the machine. */
  readonly code: OperationCode;
  readonly text: string;
}

const CODES: Readonly<Record<ReplacementHoldKind, OperationCode>> = {
  target: 'NoNodesInTarget',
  zone: 'ZoneUnhealthy',
  stopped: 'ReplacementStopped',
  pace: 'ReplacementPaced',
  limit: 'TooManyReplacements',
  grace: 'SafetyGrace',
};

const TEXTS: Readonly<Record<Exclude<ReplacementHoldKind, 'zone'>, string>> = {
  target:
    'none of the Nodes of the Machines is in the target cluster, so replacing them would not help; correct the kubeconfig of the target cluster, or, if the Nodes are lost, delete a Machine to force its replacement.',
  stopped: 'replacement is disabled by annotation machine.sapcloud.io/max-replacements of its MachineDeployment.',
  pace: 'several machines are unhealthy, not well after an update in place, or have a deleted Node, and annotation machine.sapcloud.io/max-replacements of the MachineDeployment limits replacements within one health timeout.',
  limit:
    'annotation machine.sapcloud.io/max-replacements of its MachineDeployment currently allows no more replacements.',
  grace: 'the controller started, or an outage of an API server ended, too recently to decide.',
};

/** Stands between what is wrong with a machine and why it is not replaced. */
const MARK = ' Not replaced yet: ';

/** The hold of that kind; `zone` is the machine's, empty when nobody knows it. */
export function hold(kind: ReplacementHoldKind, zone = ''): Hold {
  const code = CODES[kind];
  if (kind !== 'zone') return { kind, code, text: TEXTS[kind] };
  const where = zone === '' ? '' : `of zone ${zone} `;
  return {
    kind,
    code,
    text: `too many machines ${where}became unhealthy at once, so replacing them would not help; restore the zone, or delete a Machine to force its replacement.`,
  };
}

/** A description of what is wrong with a machine, with a hold in place of the one that it tells of. */
export function withHold(description: string, held: Hold | undefined): string {
  const [cause = ''] = description.split(MARK, 1);
  return held === undefined ? cause : `${cause}${MARK}${held.text}`;
}

/** Why a machine is not replaced, as it says itself; undefined when it does not. */
export function holdOf(machine: Pick<Machine, 'status'>): Hold | undefined {
  const phase = phaseOf(machine);
  if (phase === 'Failed' || phase === 'Running') return undefined;
  const { errorCode, description = '' } = machine.status?.lastOperation ?? {};
  const kind = HOLD_KINDS.find((one) => CODES[one] === errorCode);
  return kind === undefined ? undefined : { kind, code: CODES[kind], text: description.split(MARK)[1] ?? '' };
}
