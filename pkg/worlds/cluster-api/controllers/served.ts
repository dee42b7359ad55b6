import { WATCH_FILTER_LABEL } from '../api/keys.ts';
import type { KubeObject } from '../../../apis/meta.ts';

/** Whether an object is ours to look after, where several managers share its kind; an empty filter takes all. */
export function servedWith(filter: string): (object: KubeObject) => boolean {
  return ({ metadata }) => filter === '' || metadata.labels?.[WATCH_FILTER_LABEL] === filter;
}
