import type { KubeObject } from '../meta.ts';

/** A size of machines. Its members are top level: there is no spec. */
export interface IronCoreMachineClass extends KubeObject {
  /** Quantities by resource; cpu and memory are among them. */
  capabilities: Readonly<Record<string, string | number>>;
}
