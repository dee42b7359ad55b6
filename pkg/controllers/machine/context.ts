import type { Machine, NodeAddress } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import type { MachineActivities } from './calls/results.ts';
import type { Lister } from '../../cache/lister.ts';
import type { Clock } from '../../clock/clock.ts';
import type { Drain } from '../../drain/drain.ts';
import type { Drivers } from '../../driver/drivers.ts';
import type { MachineDriver } from '../../driver/gated-driver.ts';
import type { Gate } from '../../gate/gate.ts';
import type { Outage } from '../../gate/outage.ts';
import type { Trust } from '../../gate/leader-gate.ts';
import type { Logger } from '../../log/logger.ts';
import type { MachineMetrics } from '../../metrics/machine.ts';
import type { Step } from '../../reconcile/result.ts';
import type { Target, Targets } from '../../targets/targets.ts';
import type { SecretContents } from '../class-secrets/secret-contents.ts';
import type { Fleet } from '../machines/fleet.ts';
import type { MachineMemory } from './memory.ts';
import type { NodeAccess } from '../machines/node-access.ts';
import type { ReplacementPace } from '../machines/pace.ts';
import type { PassNotes } from './pass.ts';
import type { Retries } from './retries.ts';
import type { MachineSettings } from '../machines/settings.ts';
import type { MachineCopy } from '../machines/status.ts';
import type { TokenAccess } from './bootstrap-tokens.ts';

/** What outlives a pass and is shared by all Machines. */
export interface MachineWorld {
  readonly clock: Clock;
  readonly settings: MachineSettings;
  /** With the indexes of ../node-index. */
  readonly machines: Lister<Machine>;
  readonly classes: Lister<MachineClass>;
  readonly targets: Pick<Targets, 'of'>;
  /** Content of the Secrets that MachineClasses name. */
  readonly secrets: Pick<SecretContents, 'of'>;
  readonly activities: MachineActivities;
  readonly drivers: Drivers;
  readonly drain: Drain;
  readonly gate: Gate;
  readonly trust: Trust;
  /** Clusters that are frozen now. */
  readonly outages: () => readonly Outage[];
  readonly metrics: MachineMetrics;
  readonly fleet: Fleet;
  readonly pace: ReplacementPace;
  readonly retries: Retries;
  readonly memory: MachineMemory;
  /** Live read of a Machine; undefined when the server says NotFound. */
  readonly readMachine: (machine: Machine, signal: AbortSignal) => Promise<Machine | undefined>;
  /** Annotates exactly this Machine with the time at which CreateMachine is sent: the one write that a pass cannot make. */
  readonly markCreationSent: (machine: Machine, signal: AbortSignal) => Promise<void>;
  /** DELETE of exactly this Machine, while it and its target cluster are known to live; gone already is fine. */
  readonly deleteMachine: (machine: Machine, signal: AbortSignal) => Promise<void>;
}

/** The class of a machine, and what a call about its VM needs. */
export interface ResolvedClass {
  readonly machineClass: MachineClass;
  readonly driver: MachineDriver;
  /** Merged content of the class's Secrets. */
  readonly secretData: Readonly<Record<string, Uint8Array>>;
  /** Changes when a call could have another result: Machine generation, class resourceVersion, Secret content. */
  readonly fingerprint: string;
}

/** A VM that exists for this machine, and how that was learned. */
export interface Launched {
  /** created: just now. adopted: it was there. uninitialized: there, but not finished. known: the driver cannot tell, we trust our record. */
  readonly how: 'created' | 'adopted' | 'uninitialized' | 'known';
  readonly providerID: string;
  readonly nodeName: string;
  readonly addresses: readonly NodeAddress[];
  readonly lastKnownState: string | undefined;
  /** Whether InitializeMachine is to be called. */
  readonly needsInitialize: boolean;
}

/** One pass over one Machine. */
export interface MachineContext extends MachineWorld {
  readonly key: string;
  /** As the cache has it, our own writes included. Never changed. */
  readonly observed: Machine;
  /** The copy that steps change; the controller writes it once when they have run. */
  readonly machine: MachineCopy;
  readonly signal: AbortSignal;
  readonly log: Logger;
  readonly pass: PassNotes;
  /** Undefined without a target cluster. */
  readonly target: Target | undefined;
  readonly nodes: NodeAccess | undefined;
  readonly tokens: TokenAccess | undefined;
  /** Found by step `resolve`. */
  resolved?: ResolvedClass;
  /** Found by step `launch`. */
  launched?: Launched;
}

/** A named part of a pass over a Machine. */
export type MachineStep = Step<MachineContext>;
