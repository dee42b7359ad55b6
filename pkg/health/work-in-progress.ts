/** A call to a driver, or the drain of a Node, that was begun. Times are RFC 3339, machines `NAMESPACE/NAME`. */
export interface RunningActivity {
  readonly machine: string;
  /** create, initialize, status, delete, or drain. */
  readonly activity: string;
  readonly since: string;
  /** It waits for others of its kind to end. */
  readonly isQueued: boolean;
}

/** A call that failed, and is repeated. */
export interface WaitingRetry {
  readonly machine: string;
  readonly call: string;
  /** Absent where another process has recorded the failure; the Machine shows it. */
  readonly code?: string;
  /** In the words of the provider. */
  readonly message?: string;
  /** How often in a row it has failed, as far as this process knows. */
  readonly failures: number;
  readonly since: string;
  readonly nextAttempt: string;
}

/** A MachineClass whose provider has run out of something: none of its VMs are created until then. */
export interface ExhaustedClass {
  readonly machineClass: string;
  readonly message: string;
  readonly failures: number;
  readonly nextAttempt: string;
}

/** A drain under way, or between two attempts. */
export interface OpenDrain {
  readonly machine: string;
  /** deletion, preparation, in-place-update, preservation or maintenance. */
  readonly purpose: string;
  readonly since: string;
  /** Absent until they were counted, as the next. */
  readonly remainingPods?: number;
  /** Which pods it waits for, and why. */
  readonly message?: string;
  /** It does not progress without intervention. */
  readonly isBlocked: boolean;
  /** Why pods are deleted instead of evicted. */
  readonly forcedBy?: string;
  /** When pods that are left are deleted instead of evicted. */
  readonly podsDeletedAt?: string;
  readonly failures: number;
  readonly nextAttempt?: string;
}

/** When a Machine becomes Failed, unless its VM is created, its Node joins, or becomes healthy before. */
export interface FailureDeadline {
  readonly machine: string;
  readonly timeout: 'creation' | 'health';
  readonly failsAt: string;
}

/** A namespace that a process with cells has to manage. */
export interface CellState {
  readonly cell: string;
  /** Refused: its settings, its kubeconfig or its target cluster cannot be used, and its Machines are not managed. */
  readonly state: 'running' | 'refused';
  /** Why it is refused, or what is wrong although it runs. */
  readonly troubles: readonly string[];
}

/** What a process with cells has to manage. */
export interface CellsInProgress {
  /** Label selector of the namespaces; '' if they are named. */
  readonly selector: string;
  /** Their names; absent if they are selected. */
  readonly names?: readonly string[];
  /** How many shards there are, in all replicas. */
  readonly shards: number;
  /** Those that this process holds. */
  readonly held: readonly number[];
  /** The cells in them. */
  readonly states: readonly CellState[];
  /** Namespaces that have Machines and are not selected, as far as that is known; absent from the answer of an older process. */
  readonly others?: readonly string[];
}

/** What a process does about single machines, which no object records; only a leader does anything. Served on /work, for `machinist`. */
export interface WorkInProgress {
  readonly activities: readonly RunningActivity[];
  readonly retries: readonly WaitingRetry[];
  readonly exhausted: readonly ExhaustedClass[];
  readonly drains: readonly OpenDrain[];
  /** Absent from the answer of an older process. */
  readonly deadlines?: readonly FailureDeadline[];
  /** Absent from the answer of a process of one namespace. */
  readonly cells?: CellsInProgress;
}
