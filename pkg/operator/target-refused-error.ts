import { ApiError } from '../kube/client/errors.ts';

/**
 * A cell must not have a cluster, for a reason that is an Event: tried again, as what an API server refuses. The message may be shown in the
 * namespace of the cell, so it names no other namespace; `forOperators` does.
 */
export class TargetRefusedError extends ApiError {
  readonly event: 'TargetClusterTaken' | 'TargetClusterChanged';
  readonly forOperators: string;

  constructor(event: TargetRefusedError['event'], message: string, forOperators = message, retryAfterMs?: number) {
    super(409, 'Conflict', message, retryAfterMs === undefined ? {} : { retryAfterMs });
    this.event = event;
    this.forOperators = forOperators;
  }
}

/** Another namespace, `holder`, has it; `text` says so of the namespace that it is told. */
export function takenBy(holder: string, text: (other: string) => string): TargetRefusedError {
  return new TargetRefusedError('TargetClusterTaken', text('another namespace'), text(`namespace ${holder}`));
}
