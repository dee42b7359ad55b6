import { PassNotes } from '../../work/reconcile/object-pass/pass-notes.ts';
import { MACHINE_EVENTS, type MachineEvent, type MachineEventReason } from '../machine-facts/events.ts';

export class MachineNotes extends PassNotes<Omit<MachineEvent, 'object'>> {
  /** An Event to record when the Machine was written; its type follows from the reason. */
  event(reason: MachineEventReason, message: string, needs?: 'status' | 'record'): void {
    this.record({ type: MACHINE_EVENTS[reason], reason, message }, needs);
  }
}
