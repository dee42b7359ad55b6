import type { KubeObject } from '../../../apis/meta.ts';

export const MACHINE_CLASS_FINALIZER = 'compute.ironcore.dev/machineclass';

/** A size of machines. Its members are top level: there is no spec. */
export interface IronCoreMachineClass extends KubeObject {
  /** Quantities by resource; cpu and memory are among them. IronCore's own API server leaves out what is empty. */
  capabilities?: Readonly<Record<string, string | number>>;
}
