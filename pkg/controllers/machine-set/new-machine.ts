import { parseDuration } from '../../apis/duration.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import {
  CREATION_SENT_ANNOTATION,
  DELETION_POLICY_IN_FORCE_ANNOTATION,
  DELETION_PREPARATION_SINCE_ANNOTATION,
  DRAIN_SINCE_ANNOTATION,
  EFFECTIVE_CREATION_TIMEOUT_ANNOTATION,
  FORCED_DELETION_SINCE_ANNOTATION,
  MACHINE_FINALIZER,
  MAINTENANCE_ANNOTATION,
  MAINTENANCE_NODE_ANNOTATION,
  MAINTENANCE_SINCE_ANNOTATION,
  MARKED_FOR_DELETION_TIME_ANNOTATION,
  PREPARE_DELETION_ANNOTATION,
  VM_CLASS_ANNOTATION,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine, MachineSpec } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import type { New } from '../../kube/client/client.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { charactersOf, type Random } from '../../base/random/random.ts';

/**
 * What is asked of one Machine, or recorded of one: a template that was made from a Machine must not have each new one deleted, kept in
 * maintenance, or let go as if its deletion had begun long ago.
 */
const OF_ONE_MACHINE: ReadonlySet<string> = new Set([
  CREATION_SENT_ANNOTATION,
  DELETION_POLICY_IN_FORCE_ANNOTATION,
  DELETION_PREPARATION_SINCE_ANNOTATION,
  DRAIN_SINCE_ANNOTATION,
  FORCED_DELETION_SINCE_ANNOTATION,
  MAINTENANCE_ANNOTATION,
  MAINTENANCE_NODE_ANNOTATION,
  MAINTENANCE_SINCE_ANNOTATION,
  MARKED_FOR_DELETION_TIME_ANNOTATION,
  PREPARE_DELETION_ANNOTATION,
  VM_CLASS_ANNOTATION,
]);

/** What the API server appends to a generateName: no vowels and no look-alikes, so that no words come out. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;
/** The API server cuts the prefix so that the whole still is a DNS label. */
const LONGEST_PREFIX = 63 - SUFFIX_LENGTH;

/** Five random characters as the API server would choose them. */
export function randomSuffix(random: Random): string {
  return charactersOf(random, SUFFIX_ALPHABET, SUFFIX_LENGTH);
}

/** The name of a Machine of `set`, equal in form to what `generateName` gives. */
export function machineName(set: MachineSet, suffix: string): string {
  return `${set.metadata.name}-`.slice(0, LONGEST_PREFIX) + suffix;
}

/**
 * The Machine that `set` creates under `name`. It carries the finalizer from the first moment, so that no VM can be made for
 * a Machine that may vanish without notice.
 */
export function newMachine(set: MachineSet, name: string): New<Machine> {
  const { labels, annotations, finalizers } = set.spec.template?.metadata ?? {};
  const timeout = set.metadata.annotations?.[EFFECTIVE_CREATION_TIMEOUT_ANNOTATION];
  const allAnnotations = {
    ...Object.fromEntries(Object.entries(annotations ?? {}).filter(([key]) => !OF_ONE_MACHINE.has(key))),
    ...(timeout === undefined ? {} : { [EFFECTIVE_CREATION_TIMEOUT_ANNOTATION]: timeout }),
  };
  return {
    metadata: {
      name,
      generateName: `${set.metadata.name}-`,
      ...(set.metadata.namespace === undefined ? {} : { namespace: set.metadata.namespace }),
      ...(labels === undefined ? {} : { labels: { ...labels } }),
      ...(Object.keys(allAnnotations).length === 0 ? {} : { annotations: allAnnotations }),
      finalizers: [...new Set([...(finalizers ?? []), MACHINE_FINALIZER])],
      ownerReferences: [controllerReference(set, API_VERSION, 'MachineSet')],
    },
    spec: specFor(set, timeout),
  };
}

/** The creation timeout that an annotation asks for; undefined unless it is a duration. */
export function creationTimeoutFor(annotation: string | undefined): string | undefined {
  return annotation !== undefined && parseDuration(annotation) !== undefined ? annotation : undefined;
}

/** The template's spec; an effective creation timeout replaces the template's. */
function specFor(set: MachineSet, annotation: string | undefined): MachineSpec {
  const spec = { ...set.spec.template?.spec };
  const creationTimeout = creationTimeoutFor(annotation);
  return creationTimeout === undefined ? spec : { ...spec, creationTimeout };
}
