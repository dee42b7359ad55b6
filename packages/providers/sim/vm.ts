import type { TaggedVM } from '../../../pkg/drivers/machine-identity.ts';

/** A VM of the simulated cloud; its name is that of the Machine and of the Node. */
export interface SimVM extends TaggedVM {
  readonly zone: string;
  readonly size: string;
  readonly address: string;
  readonly createdAtMs: number;
  readonly power: 'on' | 'off';
  /** False until InitializeMachine was called, where the provider spec asks for it. */
  readonly initialized: boolean;
  /** When it becomes a Node; undefined: never. Wall time. */
  readonly joinsAtMs: number | undefined;
  readonly nodeLabels: Readonly<Record<string, string>>;
  /** By which its kubelet registers since its host was renamed; undefined: its name. */
  readonly hostname?: string;
}

/** Name of the Node that a VM becomes. */
export function nodeNameOf({ hostname, machineName }: SimVM): string {
  return hostname ?? machineName;
}

/** A VM that appears without a driver call, as another tool or a lost request makes it. */
export interface PlantedVM {
  readonly machineName: string;
  readonly namespace: string;
  readonly className: string;
  readonly cluster?: string;
  readonly machineUID?: string;
  readonly zone?: string;
  /** Becomes a Node at once. */
  readonly join?: boolean;
}

const FORM = 'sim:///';
const OTHER_FORM = 'sim://v2/';

/** The same VM by an id of another form, as after an upgrade of a driver, or as a cloud controller writes it. */
export function otherIDOf(providerID: string): string {
  return providerID.replace(FORM, OTHER_FORM);
}

/** The id by which the cloud knows a VM, whichever form it has. */
export function canonicalIDOf(providerID: string): string {
  return providerID.replace(OTHER_FORM, FORM);
}
