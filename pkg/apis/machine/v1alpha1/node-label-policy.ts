import type { KubeObject } from '../../meta.ts';

/** A label that Nodes may be given by templates. */
export interface AllowedLabel {
  readonly key: string;
  /** Absent: any value. */
  readonly value?: string;
}

/** Which labels the node templates of Machines in its namespace may ask for. It belongs to Machinist; the original has no such kind. */
export interface NodeLabelPolicy extends KubeObject {
  spec: {
    /** Only Machines with all of these labels are concerned; absent: all. */
    readonly machineLabels?: Readonly<Record<string, string>>;
    readonly allowed?: readonly AllowedLabel[];
  };
}
