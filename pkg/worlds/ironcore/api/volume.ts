import type { KubeObject } from '../../../apis/meta.ts';
import type { OwnedReference, Reference } from './reference.ts';

/** A volume of IronCore, as far as it is read or written here. */
export interface IronCoreVolume extends KubeObject {
  spec?: {
    /** The Machine that uses it. */
    readonly claimRef?: OwnedReference;
    readonly encryption?: { readonly secretRef?: Reference };
    readonly resources?: Readonly<Record<string, string | number>>;
    /** What is on it at first. */
    readonly dataSource?: { readonly osImage?: { readonly image?: string } };
  };
  status?: {
    readonly state?: string;
    readonly access?: {
      readonly driver?: string;
      readonly handle?: string;
      readonly volumeAttributes?: Readonly<Record<string, string>>;
      readonly secretRef?: Reference;
    };
    readonly resources?: Readonly<Record<string, string | number>>;
  };
}
