import type { KubeObject, Status } from '../../apis/meta.ts';
import { errorOfFailure } from './failure.ts';

/** One line of a watch. An ERROR ends it; a BOOKMARK carries only a resourceVersion (and annotations). */
export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: T }
  | { readonly type: 'BOOKMARK'; readonly object: KubeObject }
  | { readonly type: 'ERROR'; readonly object: Status };

const NEWLINE = 0x0a;
/** More than any API server stores in an object, several times over. */
const LONGEST_LINE_BYTES = 16 * 1024 * 1024;

/**
 * The JSON values of a stream, one a line, however the lines are cut into chunks. A last line without its newline is the
 * rest of a broken connection and is dropped. Throws ApiError Unreachable when the stream breaks or idles for too long, and
 * the reason of `signal` when that ended it.
 */
export async function* jsonLines<T>(stream: AsyncIterable<Uint8Array>, signal?: AbortSignal): AsyncGenerator<T> {
  const begun: Uint8Array[] = [];
  let begunBytes = 0;
  try {
    for await (const chunk of stream) {
      let from = 0;
      for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
        begun.push(chunk.subarray(from, at));
        const line = Buffer.concat(begun).toString('utf8');
        begun.length = 0;
        from = at + 1;
        if (line !== '') yield JSON.parse(line) as T;
      }
      if (from < chunk.length) begun.push(chunk.subarray(from));
      begunBytes = from === 0 ? begunBytes + chunk.length : chunk.length - from;
      if (begunBytes > LONGEST_LINE_BYTES) throw new Error('an event is larger than 16 MiB');
    }
  } catch (err) {
    signal?.throwIfAborted();
    throw errorOfFailure(err, 'reading a watch');
  }
}
