import type { ClassNodeTemplate, MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';
import type { Reader } from '../kube/client/client.ts';

/** What a provider says that machines of a class have, in the words of a class. */
export interface AnnouncedTemplate {
  readonly nodeTemplate: ClassNodeTemplate;
  /** Undefined: as usual. */
  readonly os: string | undefined;
}

/** Reads it, live; undefined: nothing is said. Throws ApiError. */
export type ReadAnnounced = (
  reader: Reader,
  machineClass: MachineClass,
  signal: AbortSignal,
) => Promise<AnnouncedTemplate | undefined>;
