import type { KubeObject } from '../../../apis/meta.ts';
import type { OwnedReference, Reference } from './reference.ts';

/** A network interface of IronCore, as far as it is read or written here. */
export interface IronCoreNetworkInterface extends KubeObject {
  spec?: {
    readonly networkRef?: Reference;
    readonly machineRef?: OwnedReference;
    /** Where each address comes from: it is given, or there is a prefix for it. */
    readonly ips?: readonly { readonly value?: string; readonly ephemeral?: object }[];
    /** What the runtime calls it while it is attached. */
    readonly providerID?: string;
    readonly attributes?: Readonly<Record<string, string>>;
  };
}

export interface IronCoreNetwork extends KubeObject {
  spec?: { readonly providerID?: string };
}

export interface IronCorePrefix extends KubeObject {
  spec?: { readonly prefix?: string };
  status?: { readonly phase?: string };
}
