import { createHash } from 'node:crypto';

import type { KubeObject } from '../../../apis/meta.ts';
import {
  CLUSTER_API_CLASS_ANNOTATION,
  CLASS_LABEL,
  CLUSTER_API_CLUSTER_ANNOTATION,
  MACHINE_ANNOTATION,
  CLUSTER_API_MACHINE_UID_LABEL,
} from './tags.ts';

/** For which Machine of `machine.sapcloud.io` an object was made. Its namespace is the Machine's. */
export interface Marks {
  /** Identity of the control cluster. */
  readonly cluster: string;
  readonly className: string;
  readonly machineName: string;
  readonly machineUID: string;
}

const LONGEST_LABEL = 63;
const KEPT_OF_LONG = 40;
const HASHED = 16;

/** Labels and annotations that say whose an object is. Every object has them from its creation on. */
export function marked({ cluster, className, machineName, machineUID }: Marks): {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
} {
  return {
    labels: { [CLUSTER_API_MACHINE_UID_LABEL]: machineUID, [CLASS_LABEL]: classLabelOf(className) },
    annotations: {
      [CLUSTER_API_CLUSTER_ANNOTATION]: cluster,
      [CLUSTER_API_CLASS_ANNOTATION]: className,
      [MACHINE_ANNOTATION]: machineName,
    },
  };
}

/** What an object says of itself; undefined: this driver has not made it, so that it is let alone. */
export function marksOf({ metadata: { labels = {}, annotations = {} } }: KubeObject): Marks | undefined {
  const machineUID = labels[CLUSTER_API_MACHINE_UID_LABEL];
  const cluster = annotations[CLUSTER_API_CLUSTER_ANNOTATION];
  const className = annotations[CLUSTER_API_CLASS_ANNOTATION];
  const machineName = annotations[MACHINE_ANNOTATION];
  if (machineUID === undefined || cluster === undefined || className === undefined || machineName === undefined) {
    return undefined;
  }
  return { cluster, className, machineName, machineUID };
}

/** Whether an object was made for this Machine, and for no other of its name. */
export function isCreatedFor(
  object: KubeObject,
  { cluster, machineName, machineUID }: Pick<Marks, 'cluster' | 'machineName' | 'machineUID'>,
): boolean {
  const marks = marksOf(object);
  return marks?.cluster === cluster && marks.machineName === machineName && marks.machineUID === machineUID;
}

/** Name of a class as a label may have it: a longer one is cut, and told from others that begin alike by a hash. */
export function classLabelOf(className: string): string {
  if (className.length <= LONGEST_LABEL) return className;
  const hash = createHash('sha256').update(className).digest('hex').slice(0, HASHED);
  return `${className.slice(0, KEPT_OF_LONG)}_${hash}`;
}

const FORM = 'cluster-api:///';

/** Stands for the provider id of a VM that has none yet, in lists alone: what was made for a Machine is found by it. */
export function placeholderID(namespace: string, { machineName, machineUID }: Marks): string {
  return `${FORM}${namespace}/${machineName}/${machineUID}`;
}

/** For which Machine a placeholder stands; undefined for every other id. */
export function parsePlaceholderID(
  providerID: string,
): (Pick<Marks, 'machineName' | 'machineUID'> & { readonly namespace: string }) | undefined {
  if (!providerID.startsWith(FORM)) return undefined;
  const [namespace, machineName, machineUID, ...rest] = providerID.slice(FORM.length).split('/');
  if (namespace === undefined || machineName === undefined || machineUID === undefined || rest.length > 0) {
    return undefined;
  }
  return { namespace, machineName, machineUID };
}
