const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * Calls `endNow` when this process is told to end, before the signal goes its way: no `await using` is disposed of then. `endNow` only sends
 * signals and does not wait. Disposing stops listening. Where nobody else listens for the signal, the process ends by it.
 */
export function onSignals(endNow: () => void): Disposable {
  const listener = (signal: NodeJS.Signals): void => {
    endNow();
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  };
  for (const signal of SIGNALS) process.prependOnceListener(signal, listener);
  return {
    [Symbol.dispose]() {
      for (const signal of SIGNALS) process.off(signal, listener);
    },
  };
}
