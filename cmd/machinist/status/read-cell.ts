import type { Event } from '../../../pkg/apis/wire.ts';
import { ApiError, isNotFound } from '../../../pkg/kube/client/errors.ts';
import { events, namespaces } from '../../../pkg/kube/client/resource.ts';
import { CELL_EVENT_SOURCE } from '../../../pkg/operator/cells/events.ts';
import type { CommandCluster } from '../command-cluster.ts';
import type { CellFacts } from './cell-findings.ts';

/** What the control cluster shows of the namespace of a cell; what may not be read is left out. Throws ApiError without an answer. */
export async function readCell(
  { reader, namespace }: CommandCluster,
  timeoutMs: number,
): Promise<Pick<CellFacts, 'object' | 'isMissing' | 'lastEvent'>> {
  let isMissing = false;
  const fieldSelector = 'involvedObject.kind=Namespace';
  const [object, told] = await Promise.all([
    reader.get(namespaces, { name: namespace }, { metadataOnly: true, timeoutMs }).catch((err: unknown) => {
      isMissing = isNotFound(err);
      return nothingIfRefused(err);
    }),
    reader.list(events, { namespace, fieldSelector, timeoutMs }).catch(nothingIfRefused),
  ]);
  const ofCell = (told?.items ?? []).filter(({ source }) => source?.component === CELL_EVENT_SOURCE);
  const lastEvent = ofCell.toSorted((a, b) => (timeOf(a) < timeOf(b) ? -1 : 1)).at(-1);
  return { object, isMissing, lastEvent };
}

function timeOf({ lastTimestamp, eventTime, metadata }: Event): string {
  return lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? '';
}

function nothingIfRefused(err: unknown): undefined {
  if (err instanceof ApiError && err.code !== 0) return undefined;
  throw err;
}
