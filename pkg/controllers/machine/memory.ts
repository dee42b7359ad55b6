import type { DrainRecord } from './drain/record.ts';
import { IdentityClaims } from './identity-claims.ts';
import type { Refusal } from '../machines/node-refusal.ts';

/** What this process knows of a Node for which the API server refuses something. */
export interface RefusedNodeSync {
  /** Of what was asked for, and of which Node. */
  readonly asked: string;
  readonly refusals: readonly Refusal[];
  readonly failures: number;
  /** When it is tried again, monotonic. */
  readonly retryAtMs: number;
}

/** What this process knows of a Machine that goes on although the API server refuses to record something of it. */
export interface RefusedRecord {
  /** What is refused, once it was told. */
  readonly text: string | undefined;
  /** How often in a row, tries aside that came before their time. */
  readonly times: number;
  /** When it is tried again at the latest, monotonic. */
  readonly retryAtMs: number;
}

/** In place of the time until which a VM may show: see MachineMemory.unanswered. */
export const SENT = Number.POSITIVE_INFINITY;
export const ANSWERED = 0;

/** What this process remembers of Machines between passes, by UID. Losing it costs repeated questions, never a VM. */
export class MachineMemory {
  /** Nodes of which something was refused. */
  readonly nodeSyncs = new Map<string, RefusedNodeSync>();
  /** Drains under way, or waiting to be tried again. */
  readonly drains = new Map<string, DrainRecord>();
  /**
   * CreateMachine calls that got no answer: until when (monotonic) their VM may show, and they must not be repeated. SENT: the
   * answer is awaited. ANSWERED: it came, only the annotation that told of the call is left.
   */
  readonly unanswered = new Map<string, number>();
  /** Nodes that were given our finalizer by this process, and when (monotonic), by the UID of their Machine. */
  readonly protectedNodes = new Map<string, { readonly uid: string; readonly atMs: number }>();
  /** Nodes that our finalizer did not keep from being deleted, by the UID of their Machine. */
  readonly lostNodes = new Map<string, { readonly name: string; readonly uid: string }>();
  /** Bootstrap tokens that could not be deleted: when to try again (monotonic). */
  readonly leftTokens = new Map<string, number>();
  /** Deletions whose VolumeAttachments could not be deleted: since when (monotonic). */
  readonly detaching = new Map<string, number>();
  /** Deletions that this process has advanced itself: their Machine was there, and being deleted, when that was written. */
  readonly advanced = new Set<string>();
  /** VMs and Node names by the Machine that this process has recorded them for. */
  readonly identities = new IdentityClaims();
  /** Machines for which a driver has answered with what is another's. */
  readonly doubted = new Set<string>();
  /** Machines of which the API server refuses to record something. */
  readonly refusedRecords = new Map<string, RefusedRecord>();
  readonly #told = new Map<string, Set<string>>();

  /** True the first time that this is to be told of this Machine. */
  isNews(uid: string, what: string): boolean {
    const told = this.#told.get(uid) ?? new Set();
    if (told.has(what)) return false;
    this.#told.set(uid, told.add(what));
    return true;
  }

  /** Whether `what` has just become true of this Machine; once it no longer is, it may become so again. */
  becomes(uid: string, what: string, isSo: boolean): boolean {
    if (isSo) return this.isNews(uid, what);
    this.#told.get(uid)?.delete(what);
    return false;
  }

  /** The Machine is gone. */
  forget(uid: string): void {
    this.drains.delete(uid);
    this.nodeSyncs.delete(uid);
    this.unanswered.delete(uid);
    this.leftTokens.delete(uid);
    this.protectedNodes.delete(uid);
    this.lostNodes.delete(uid);
    this.detaching.delete(uid);
    this.advanced.delete(uid);
    this.identities.forget(uid);
    this.doubted.delete(uid);
    this.refusedRecords.delete(uid);
    this.#told.delete(uid);
  }
}
