import type { ManagerProcess } from '../manager-process.ts';
import type { Operator } from '../operator.ts';
import type { Member } from '../process/lifecycle.ts';
import type { Service } from '../service.ts';
import type { CellClients } from './cell-clients.ts';

/** What a process serves for all its cells on one port: it listens from before the first of them begins until the last has ended. */
export interface CellsService extends Member {
  /** What of it is one cell's, and begins and ends with it; nothing where nobody is served. */
  of(operator: Operator): readonly Service[];
}

/** What a service knows of the cells of all processes. */
export interface KnownCells {
  /** Whose autoscalers clients are. */
  readonly clients: CellClients;
  /** Whether this process is the one that manages a namespace. */
  isOurs(cell: string): boolean;
  /** The Lease whose holder manages it, with the namespace of the Lease. */
  leaseOf(cell: string): string;
  /** Why this process, which is to manage it, does not; undefined: nothing is known to be wrong. */
  whyRefused(cell: string): string | undefined;
}

/** Makes the service of a process; undefined: its flags ask for none. */
export type ServeCells = (process: ManagerProcess, cells: KnownCells) => CellsService | undefined;
