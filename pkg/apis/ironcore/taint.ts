/** Keeps Machines that do not tolerate it away from a pool; with effect NoExecute also those that are there. */
export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

/** What a Machine puts up with. Without a key or an effect: any of them. */
export interface Toleration {
  readonly key?: string;
  /** Absent: Equal. */
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
}
