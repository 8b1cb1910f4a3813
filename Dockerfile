# The service and its command line: see docs/operations/running.md, "In containers". Node has the version that
# package-lock.json pins. Its development dependency is left out, so bin/fuel uses the image's own Node.
FROM node:24.21-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:24.21-slim
ENV NODE_ENV=production
ENV FUEL_DATA_DIR=/data
ENV FUEL_LISTEN=0.0.0.0:8443
ENV FUEL_OPS_LISTEN=0.0.0.0:9464
# The cache of compiled sources. The root file system may be read-only.
ENV XDG_CACHE_HOME=/tmp
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json ./
COPY bin ./bin
COPY projections ./projections
COPY src ./src
COPY docs/openapi.yaml ./docs/openapi.yaml
COPY deploy/health-check.js ./deploy/health-check.js
RUN ln -s /app/bin/fuel /usr/local/bin/fuel
# A new volume gets its owner and mode from here.
RUN mkdir -m 700 /data && chown node:node /data
USER node
VOLUME ["/data"]
EXPOSE 8443 9464
# Checks that the process is alive, not that it is ready: an unavailable engine is no reason to replace the container.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["node", "/app/deploy/health-check.js", "/healthz"]
ENTRYPOINT ["/app/bin/fuel"]
CMD ["serve"]
