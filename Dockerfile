# The image of the daemon. Build tools stay in the first stage; the second has an interpreter, the
# packages and nothing to write to but /data and /tmp. docs/deployment.md says how to run it.
ARG PYTHON=3.13-slim-bookworm

FROM python:${PYTHON} AS build
WORKDIR /build
COPY requirements.lock pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY syncer ./syncer
COPY migrations ./migrations
# The lock names every version; its hashes cannot vouch for the project itself, so they are left out.
RUN sed -n 's/^\([a-zA-Z0-9._-]*==[^\\]*\).*/\1/p' requirements.lock > constraints.txt \
 && python -m venv /opt/syncer \
 && /opt/syncer/bin/pip install --no-cache-dir --constraint constraints.txt '.[offline]' \
 && /opt/syncer/bin/pip uninstall --yes pip

FROM python:${PYTHON}
RUN python -m pip uninstall --yes pip \
 && useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin syncer \
 && install -d -o syncer -g syncer -m 0750 /data
COPY --from=build /opt/syncer /opt/syncer
ENV PATH=/opt/syncer/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HF_HOME=/data/models
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s --retries=3 \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:9464/healthz', timeout=4)"]
ENTRYPOINT ["syncer"]
CMD ["run"]
