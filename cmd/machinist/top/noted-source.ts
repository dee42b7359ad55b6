import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { ListWatch } from '../../../pkg/kube/client/list-watch.ts';

/** A source that reports how its requests end: undefined for an answer, else the error. */
export function notedSource<T extends KubeObject>(source: ListWatch<T>, note: (err: unknown) => void): ListWatch<T> {
  return {
    resource: source.resource,
    selection: source.selection,
    answeredSince: (sinceMs, signal) => source.answeredSince(sinceMs, signal),
    async list(options) {
      try {
        const list = await source.list(options);
        note(undefined);
        return list;
      } catch (err) {
        note(err);
        throw err;
      }
    },
    async *watch(options) {
      const onOpen = (): void => {
        note(undefined);
        options.onOpen?.();
      };
      try {
        yield* source.watch({ ...options, onOpen });
      } catch (err) {
        note(err);
        throw err;
      }
    },
  };
}
