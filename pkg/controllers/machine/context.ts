import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { CreatedMachine } from '../../driver/driver.ts';
import type { MachineDriver } from '../../driver/gated-driver.ts';
import { PassNotes } from '../../work/reconcile/object-pass/pass-notes.ts';
import type { Step } from '../../work/reconcile/result.ts';
import { MACHINE_EVENTS, type MachineEvent, type MachineEventReason } from '../machine-facts/events.ts';
import type { NodeAccess } from '../machine-facts/node-access.ts';
import type { Hold } from '../machine-facts/replacement-hold.ts';
import type { MachineCopy } from '../machine-facts/status.ts';

export interface ResolvedClass {
  readonly machineClass: MachineClass;
  readonly driver: MachineDriver;
  /** Merged content of the class's Secrets. */
  readonly secretData: Readonly<Record<string, Uint8Array>>;
  /** Keys of those Secrets that do not exist, or are in a foreign namespace. */
  readonly missingSecrets: readonly string[];
  /** Changes when a call could have another result: Machine generation, class resourceVersion, Secret content. */
  readonly fingerprint: string;
  /** Changes with what the class says and with Secret content alone. */
  readonly classVersion: string;
}

/** A VM that exists for this machine, and how that was learned. */
export interface Launched extends CreatedMachine {
  /** created: just now. adopted: it was there. uninitialized: there, but not finished. known: the driver cannot tell, we trust our record. */
  readonly how: 'created' | 'adopted' | 'uninitialized' | 'known';
  /** Known, although the driver says that there is none. */
  readonly isUnseen?: boolean;
  readonly needsInitialize: boolean;
}

/** One pass over one Machine, and nothing that outlives it: what steps work with they are made with (steps.ts). */
export interface MachineContext {
  readonly key: string;
  /** As the cache has it, our own writes included. Never changed. */
  readonly observed: Machine;
  /** The copy that steps change; it is written once when they have run. */
  readonly machine: MachineCopy;
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly pass: MachineNotes;
  /** Those of its target cluster; undefined without one. */
  readonly nodes: NodeAccess | undefined;
  /** Found by step `resolve`. */
  resolved?: ResolvedClass;
  /** Found by step `launch`. */
  launched?: Launched;
  /** Why the machine is not replaced yet, as the first step has said that was asked. */
  held?: Hold;
}

export interface MachineStep extends Step<MachineContext> {
  /** Drops what it remembers of a Machine that is gone. */
  forget?(machineUID: string): void;
}

export class MachineNotes extends PassNotes<Omit<MachineEvent, 'object'>> {
  /** An Event to record when the Machine was written; its type follows from the reason. */
  event(reason: MachineEventReason, message: string, needs?: 'status' | 'record'): void {
    this.record({ type: MACHINE_EVENTS[reason], reason, message }, needs);
  }
}
