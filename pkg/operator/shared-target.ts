import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import type { Informer } from '../kube/cache/lister.ts';
import type { Identities } from './identities.ts';

/** What namespaces need of each other whose Machines become Nodes of one target cluster. */
export interface SharedTarget {
  /** Changes of Machines in all namespaces of the control cluster, also of those that nobody manages. */
  readonly machines: Pick<Informer<Machine>, 'onChange'>;
  readonly identities: Identities;
  /** Whether it is for this namespace to act on a Node of this name that no Machine has. */
  readonly isJudgeOf: (nodeName: string) => boolean;
}
