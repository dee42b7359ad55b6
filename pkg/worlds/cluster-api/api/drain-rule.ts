import type { KubeObject, LabelSelector } from '../../../apis/meta.ts';

/** A MachineDrainRule of Cluster API: what drains of its namespace do about pods. */
export interface MachineDrainRule extends KubeObject {
  readonly spec?: {
    readonly drain?: {
      /** Drain, Skip or WaitCompleted. */
      readonly behavior?: string;
      /** Of pods with Drain: those of a lower order go first. */
      readonly order?: number;
    };
    /** One of them has to fit; none: all do. */
    readonly machines?: readonly { readonly selector?: LabelSelector; readonly clusterSelector?: LabelSelector }[];
    /** The same. */
    readonly pods?: readonly { readonly selector?: LabelSelector; readonly namespaceSelector?: LabelSelector }[];
  };
}
