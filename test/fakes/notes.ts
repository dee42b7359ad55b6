import type { PassNotes } from '../../pkg/work/reconcile/object-pass/pass-notes.ts';

/** The Events that a pass records when it was written. */
export function eventsOf<Event>(notes: PassNotes<Event>): readonly Event[] {
  const events: Event[] = [];
  notes.complete((event) => events.push(event));
  return events;
}
