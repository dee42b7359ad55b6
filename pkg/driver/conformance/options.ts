import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { DriverAddress } from '../grpc/address.ts';

/** Contents of a class's Secrets, as a driver gets them. */
export type SecretData = Readonly<Record<string, Uint8Array>>;

/** What a driver is tried with. Rules that need what is not given do not apply. */
export interface VerifyOptions {
  readonly address: DriverAddress;
  readonly machineClass: MachineClass;
  readonly secretData: SecretData;
  /** The same class with a mistake in its provider spec. */
  readonly badClass?: MachineClass;
  /** Credentials that the provider does not accept. */
  readonly badSecretData?: SecretData;
  /** Ends the driver, as a crash would, and starts it again; resolves when it was started. */
  readonly restart?: (signal: AbortSignal) => Promise<void>;
  /** Makes a VM at the provider, named as this machine, as an earlier tool did: without our tags. */
  readonly makeUntagged?: (machine: UntaggedMachine, signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  /** How long a call may take, instead of what is usual for its method. */
  readonly callMs?: number;
  /** How long a rule may take with all its calls, and what it made may take to be removed. */
  readonly ruleMs?: number;
  /** Is told, line by line, which rule begins and what one that takes long is waiting for. */
  readonly report?: (line: string) => void;
  /** After how long a rule takes long; what it waits for is told again each time that its age has doubled. */
  readonly reportMs?: number;
  /** How long a driver that does not answer any more is waited for. */
  readonly returnMs?: number;
  /** How long a list may lag behind, and a call may outlive its time. */
  readonly lagMs?: number;
}

/** A machine whose VM another tool makes. */
export interface UntaggedMachine {
  readonly name: string;
  readonly namespace: string;
  readonly className: string;
}
