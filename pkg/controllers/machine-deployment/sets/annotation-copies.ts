import {
  CHANGED_ON_CREATION_ANNOTATION,
  DELETION_POLICY_ANNOTATION,
  DESIRED_REPLICAS_ANNOTATION,
  EFFECTIVE_CREATION_TIMEOUT_ANNOTATION,
  FRONT_END_REPLICAS_ANNOTATION,
  LAST_APPLIED_CONFIGURATION_ANNOTATION,
  LAST_SCALER_CHANGE_ANNOTATION,
  MAX_REPLACEMENTS_ANNOTATION,
  MAX_REPLICAS_ANNOTATION,
  NODE_GROUP_MAX_ANNOTATION,
  NODE_GROUP_MIN_ANNOTATION,
  PAUSED_BY_FRONT_END_ANNOTATION,
  PREFER_NO_SCHEDULE_KEY,
  REVISION_ANNOTATION,
  REVISION_HISTORY_ANNOTATION,
  TRIGGER_DELETION_ANNOTATION,
  UNFREEZE_ANNOTATION,
  UPDATE_ORDER_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';

/**
 * What becomes of an annotation of a MachineDeployment:
 *
 * | copies    | copied to its new set | a rollback                                                             |
 * |-----------|-----------------------|------------------------------------------------------------------------|
 * | none      | no                    | leaves it as it is                                                     |
 * | sets      | yes                   | leaves it as it is: it says how the pool is operated now               |
 * | rollbacks | yes                   | makes it what it was at that revision; it tells of the template, as `kubernetes.io/change-cause` does |
 */
type Copies = 'none' | 'sets' | 'rollbacks';

const COPIES: Readonly<Record<string, Copies>> = {
  [LAST_APPLIED_CONFIGURATION_ANNOTATION]: 'none',
  [REVISION_ANNOTATION]: 'none',
  [REVISION_HISTORY_ANNOTATION]: 'none',
  [DESIRED_REPLICAS_ANNOTATION]: 'none',
  [MAX_REPLICAS_ANNOTATION]: 'none',
  [PREFER_NO_SCHEDULE_KEY]: 'none',
  [CHANGED_ON_CREATION_ANNOTATION]: 'none',
  [UNFREEZE_ANNOTATION]: 'none',
  [TRIGGER_DELETION_ANNOTATION]: 'none',
  [FRONT_END_REPLICAS_ANNOTATION]: 'none',
  [PAUSED_BY_FRONT_END_ANNOTATION]: 'none',
  [DELETION_POLICY_ANNOTATION]: 'none',
  [UPDATE_ORDER_ANNOTATION]: 'none',
  [LAST_SCALER_CHANGE_ANNOTATION]: 'sets',
  [EFFECTIVE_CREATION_TIMEOUT_ANNOTATION]: 'sets',
  [MAX_REPLACEMENTS_ANNOTATION]: 'sets',
  [NODE_GROUP_MIN_ANNOTATION]: 'sets',
  [NODE_GROUP_MAX_ANNOTATION]: 'sets',
};

/** Domains of keys that are orders to controllers and autoscalers, known here or not. */
const OPERATIONAL = ['machine.sapcloud.io', 'autoscaler.gardener.cloud', 'cluster-autoscaler.kubernetes.io'];

type Annotated = Pick<MachineDeployment | MachineSet, 'metadata'>;

export function annotationsForSets(deployment: Annotated): Record<string, string> {
  return annotationsOf(deployment, (key) => copiesOf(key) !== 'none');
}

/**
 * The annotations of a MachineDeployment that a rollback to `target` changes; null removes one. How the pool is operated stays: neither a
 * limit that was lifted nor one that was set since comes back or goes with the template.
 */
export function rolledBackAnnotations(deployment: Annotated, target: Annotated): Record<string, string | null> {
  const isOfTemplate = (key: string): boolean => copiesOf(key) === 'rollbacks';
  const wanted = annotationsOf(target, isOfTemplate);
  const present = annotationsOf(deployment, isOfTemplate);
  const gone = Object.keys(present).filter((key) => wanted[key] === undefined);
  return { ...wanted, ...Object.fromEntries(gone.map((key) => [key, null])) };
}

function copiesOf(key: string): Copies {
  const [domain = ''] = key.split('/');
  const isOperational = OPERATIONAL.some((one) => domain === one || domain.endsWith(`.${one}`));
  return COPIES[key] ?? (isOperational ? 'sets' : 'rollbacks');
}

function annotationsOf({ metadata }: Annotated, isMeant: (key: string) => boolean): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([key]) => isMeant(key)));
}
