import type { KubeObject } from '../../apis/meta.ts';
import type { Resource } from '../../apis/resource.ts';
import type { EventType } from './correlator.ts';
import { subjectOf } from './event-object.ts';
import type { Recorder } from './recorder.ts';

/** What controllers hand their Events to; never throws and never waits. */
export interface ObjectEvents<T extends KubeObject> {
  event(event: {
    readonly object: T;
    readonly type: EventType;
    readonly reason: string;
    readonly message: string;
  }): void;
}

/** Events about objects of one resource: cached objects do not say of which kind they are. */
export function eventsAbout<T extends KubeObject>(resource: Resource<T>, recorder: Recorder): ObjectEvents<T> {
  return {
    event({ object, type, reason, message }) {
      recorder.record({ subject: subjectOf(resource, object), type, reason, message });
    },
  };
}
