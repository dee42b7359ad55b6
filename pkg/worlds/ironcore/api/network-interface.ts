import type { KubeObject } from '../../../apis/meta.ts';
import type { OwnedReference, Reference } from './reference.ts';

/** A network interface of IronCore, as far as it is read or written here. */
export interface IronCoreNetworkInterface extends KubeObject {
  spec?: {
    readonly networkRef?: Reference;
    readonly machineRef?: OwnedReference;
    readonly ips?: readonly IPSource[];
    /** What the runtime calls it while it is attached. */
    readonly providerID?: string;
    readonly attributes?: Readonly<Record<string, string>>;
  };
}

/** Where an address comes from: it is given, or there is a prefix for it. */
export interface IPSource {
  readonly value?: string;
  readonly ephemeral?: object;
}

export interface IronCoreNetwork extends KubeObject {
  spec?: { readonly providerID?: string };
}

export interface IronCorePrefix extends KubeObject {
  spec?: { readonly prefix?: string };
  status?: { readonly phase?: string };
}
