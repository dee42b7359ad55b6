import type { ObjectMeta } from '../../meta.ts';

/** How VMs of one kind are made. The members are top level: a MachineClass has no `spec`. */
export interface MachineClass {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  /** Opaque to us, read by the driver only. */
  providerSpec: unknown;
  /** Name of the driver. */
  provider?: string;
  /** Secret with `userData`, and usually the provider's credentials. */
  secretRef?: SecretReference;
  /** Secret whose data goes over that of `secretRef`, key by key. */
  credentialsSecretRef?: SecretReference;
  /** What a Node of this class will look like, for scaling from zero. */
  nodeTemplate?: ClassNodeTemplate;
}

export interface SecretReference {
  name?: string;
  namespace?: string;
}

/** Size and place of the Nodes of a class. */
export interface ClassNodeTemplate {
  capacity: Record<string, string | number>;
  /** Written into the Node's `status.capacity`. */
  virtualCapacity?: Record<string, string | number>;
  instanceType: string;
  region: string;
  zone: string;
  architecture?: string;
}
