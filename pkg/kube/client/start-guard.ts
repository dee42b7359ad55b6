import type { Dispatcher } from 'undici';

/** The request was not sent: the time for it is over. */
export class NotStartedError extends Error {
  override readonly name = 'NotStartedError';
}

/**
 * An undici interceptor that heeds `mayStart`. A request may wait for a connection, and a process that was paused meanwhile
 * handles what has come from the network before its timers: without this look it would send what it should not any more.
 */
export function startGuard(dispatch: Dispatcher.Dispatch): Dispatcher.Dispatch {
  return (options, handler) => {
    const { mayStart } = options as { readonly mayStart?: (() => boolean) | undefined }; // undici hands options on as they are
    return dispatch(options, mayStart === undefined ? handler : new GuardedHandler(handler, mayStart));
  };
}

class GuardedHandler implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler;
  readonly #mayStart: () => boolean;

  constructor(handler: Dispatcher.DispatchHandler, mayStart: () => boolean) {
    this.#handler = handler;
    this.#mayStart = mayStart;
  }

  /** Called right before the request is written; what it throws ends the request and keeps the connection. */
  onRequestStart(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onRequestStart']>>): void {
    if (!this.#mayStart()) throw new NotStartedError('the request timed out before it was sent');
    this.#handler.onRequestStart?.(...args);
  }

  onRequestUpgrade(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onRequestUpgrade']>>): void {
    this.#handler.onRequestUpgrade?.(...args);
  }

  onResponseStart(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>): void {
    this.#handler.onResponseStart?.(...args);
  }

  onResponseData(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseData']>>): void {
    this.#handler.onResponseData?.(...args);
  }

  onResponseEnd(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseEnd']>>): void {
    this.#handler.onResponseEnd?.(...args);
  }

  onResponseError(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseError']>>): void {
    this.#handler.onResponseError?.(...args);
  }
}
